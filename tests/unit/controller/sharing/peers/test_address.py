"""Tests of the address of the port for other servers, and of the settings that must be the same."""

from pathlib import Path

import pytest

from meshwright.controller.errors import SettingsError, StartupError
from meshwright.controller.settings.settings import load
from meshwright.controller.sharing.peers import address
from meshwright.controller.sharing.peers.address import announced, peer_socket
from meshwright.controller.sharing.peers.parts import settings_digests
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.listening_sockets import listening

SHARED = {"state": "s", "kubernetes": True, "store": "kubernetes"}
ALL = HostPort("::", 15132)


@pytest.mark.parametrize(
    ("bound", "reached_at", "environment", "expected"),
    [
        (ALL, "", {"POD_IP": "10.0.0.7"}, "10.0.0.7:15132"),
        (ALL, "", {"POD_IP": "fd00::7"}, "[fd00::7]:15132"),
        (ALL, "", {}, "host-1:15132"),
        (HostPort("0.0.0.0", 1), "", {}, "host-1:1"),
        (ALL, "10.1.1.1", {"POD_IP": "10.0.0.7"}, "10.1.1.1:15132"),
        (ALL, "fd00::8", {}, "[fd00::8]:15132"),
        (HostPort("127.0.0.1", 5), "", {"POD_IP": "10.0.0.7"}, "127.0.0.1:5"),
        (HostPort("::1", 5), "", {}, "[::1]:5"),
    ],
)
def test_announced_address(
    bound: HostPort, reached_at: str, environment: dict[str, str], expected: str
) -> None:
    """The setting wins; a port on one address is announced with this address; else the Pod or machine."""
    result = announced(bound, reached_at, environment, "host-1")
    assert str(result) == expected
    assert HostPort.parse(expected) == result


def test_single_server_has_no_port() -> None:
    """With the default store, nothing listens for other servers."""
    assert peer_socket(load({"mesh": "m", "state": "s"})) is None


def test_default_port_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two servers can run on one machine: the second takes a free port. A port of the settings is a must."""
    with listening(HostPort("127.0.0.1", 0)) as taken:
        at = HostPort("127.0.0.1", taken.getsockname()[1])
        monkeypatch.setattr(address, "DEFAULT", at)
        free = peer_socket(load(SHARED))
        assert free is not None
        with free:
            assert free.getsockname()[1] != at.port
        with pytest.raises(StartupError, match=f"cannot listen on {at} \\(peer_address\\): "):
            peer_socket(load(SHARED | {"peer_address": str(at)}))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {"mesh": "m", "state": "s", "peer_address": "127.0.0.1:1"},
            "peer_address requires a store that several servers share: set store, or remove peer_address",
        ),
        (
            {"mesh": "m", "state": "s", "peer_reached_at": "a"},
            "peer_reached_at requires a store that several servers share: set store, or remove peer_reached",
        ),
        (SHARED | {"peer_reached_at": "a b"}, "must be a host name or an IP address, for example 10.0.0.7"),
    ],
)
def test_wrong_settings(given: dict[str, object], sentence: str) -> None:
    """The error says what would be right."""
    with pytest.raises(SettingsError) as error:
        load(given)
    assert sentence in str(error.value)


def test_settings_that_must_be_the_same() -> None:
    """Paths, addresses and log levels belong to a machine; a digest does not reveal the value."""
    one = settings_digests(load(SHARED | {"trust_domain": "a.example"}))
    two = settings_digests(
        load(
            SHARED
            | {
                "state": Path("/other"),
                "ads_address": "127.0.0.1:1",
                "peer_address": "127.0.0.1:2",
                "log_level": "debug",
                "trust_domain": "b.example",
                "kubeconfig": Path("/k"),
            }
        )
    )
    assert {name for name in one.keys() & two.keys() if one[name] != two[name]} == {"trust_domain"}
    assert not {"state", "ads_address", "log_level", "http_address"} & one.keys()
    assert "a.example" not in one["trust_domain"]
