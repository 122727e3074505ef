"""Tests of listening sockets on dual-stack machines and on machines without IPv6."""

import socket

import pytest

from meshwright.mesh.host_port import HostPort
from meshwright.mesh.listening_sockets import listening, reached_from_here
from tools.ports import free_port


def _takes(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=30):
            return True
    except OSError:
        return False


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="there is no IPv6")
@pytest.mark.parametrize(
    ("host", "expected"),
    [("::", (True, True)), ("::1", (False, True)), ("0.0.0.0", (True, False)), ("127.0.0.1", (True, False))],
)
def test_only_the_ipv6_wildcard_accepts_both_families(host: str, expected: tuple[bool, bool]) -> None:
    """A kubelet may call by either family; other addresses accept only their own family."""
    port = free_port("127.0.0.1")  # reserved, so that no other test listens on it at ::1
    with listening(HostPort(host, port)):
        assert (_takes("127.0.0.1", port), _takes("::1", port)) == expected
        for item in {host, reached_from_here(host)} - {"::", "0.0.0.0"}:
            assert _takes(item, port)


def test_ipv6_wildcard_listens_on_ipv4_without_ipv6_support(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel started with `ipv6.disable=1` has no IPv6 sockets."""
    real = socket.socket

    class _Ipv4Alone(socket.socket):
        def __init__(self, family: int = -1, *more: int, **named: int | None) -> None:
            if family == socket.AF_INET6:
                raise OSError(97, "Address family not supported by protocol")
            super().__init__(family, *more, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "socket", _Ipv4Alone)
    with listening(HostPort("::", 0)) as taken:
        assert taken.family is socket.AF_INET
        host, port = taken.getsockname()
        assert host == "0.0.0.0"
        assert _takes(reached_from_here("::"), port)
    monkeypatch.setattr(socket, "socket", real)
