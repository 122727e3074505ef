"""Tests of our units under a separate systemd: start, readiness, watchdog, kill and stop.

Every program runs with its unit's restrictions, so the test also shows that the permissions suffice.
"""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from meshwright.cli.units import AGENT_UNIT, INTERCEPT_UNIT, SERVER_UNIT
from tests.e2e.systemd import PROXY, SECONDS, Condition, Systemd, booted, dropped_in, missing_for_systemd
from tests.meshes import texts
from tests.tools.forked_cli import Command, Typed

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.root,
    pytest.mark.skipif(bool(missing_for_systemd()), reason=missing_for_systemd()),
]

PROGRAM = "/opt/meshwright/bin/meshwright"
STATE = ("--state", "/var/lib/meshwright")
CAPTURED = ("--capture", "tproxy", "--exclude-inbound-ports", "22,15020")
TOLD = {
    SERVER_UNIT: ("serve", "--mesh", "/srv/mesh", *STATE, "--http-address", "127.0.0.1:80"),
    AGENT_UNIT: (
        *("agent", "--credentials", "/srv/credentials", "--ads", "127.0.0.1:15128"),
        *("--envoy", "/opt/envoy/bin/envoy", "--concurrency", "1", "--termination-least-seconds", "0"),
        *("--override", "/srv/override.json", "--hosts-file", "/srv/hosts"),
    ),
    INTERCEPT_UNIT: ("intercept", *CAPTURED),
}
WATCHED = "WatchdogSec=3\n"
TRANSPARENT = "interception: {capture: tproxy}"


@pytest.fixture(scope="module")
def systemd(tmp_path_factory: pytest.TempPathFactory, typed: Typed, envoy: str) -> Iterator[Systemd]:
    """Return a systemd with our units; a mesh and empty credentials are in /srv."""
    folder = tmp_path_factory.mktemp("systemd")
    for path in (folder, *folder.parents[:2]):
        path.chmod(0o755)  # what runs inside is other users
    units: dict[str, str] = {}
    for unit, (which, *arguments) in TOLD.items():
        more = ("--tproxy",) if unit == AGENT_UNIT else ()
        words = ("unit", which, "--program", PROGRAM, *more, "--", *arguments)
        done = typed.run(Command(folder, words, {}), SECONDS)
        assert done.returncode == 0, done.stderr
        units |= {
            unit: done.stdout,
            f"{unit}.d/here.conf": dropped_in(unit, WATCHED if unit != INTERCEPT_UNIT else ""),
        }
    with booted(folder, units, envoy) as result:
        _prepare(folder / "srv")
        yield result


def _prepare(srv: Path) -> None:
    """Write the mesh and the proxy's files; the credentials are issued later."""
    service = texts.service("store", texts.port(80, 18080))
    workload = texts.workload("w1", "10.0.0.1", app="store", account="store", uuid="one", spec=TRANSPARENT)
    (srv / "mesh").mkdir()
    (srv / "mesh" / "mesh.yaml").write_text(texts.joined(service, workload))
    (srv / "override.json").write_text("{}")
    (srv / "hosts").write_text("127.0.0.1 localhost\n")
    os.chown(srv / "hosts", PROXY[1], PROXY[1])


def _issue(systemd: Systemd) -> None:
    """Issue a certificate as root, from the state of a server that runs as another user."""
    name = ("--uuid", "one", "--service", "store", "--namespace", "shop", "--out", "/srv/credentials")
    systemd.run(PROGRAM, "certs", "issue-proxy", *STATE, *name)
    credentials = systemd.folder / "srv" / "credentials"
    for path in (credentials, *credentials.iterdir()):
        os.chown(path, PROXY[1], PROXY[1])


def _is(state: str, status: str = "") -> Condition:
    return lambda shown: shown["ActiveState"] == state and status in shown.get("StatusText", "")


def _says(systemd: Systemd, unit: str, words: str) -> Condition:
    return lambda _: words in systemd.log(unit)


def _rules(systemd: Systemd) -> bool:
    return "MESH_" in systemd.run("iptables-save")


def test_units_start_when_ready_and_recover_from_hangs_reloads_and_restarts(systemd: Systemd) -> None:
    """A unit is active only once its program is ready, and recovers by its watchdog when it hangs.

    Interception rules exist from the agent's first readiness until the stop. Every program runs with its
    unit's restrictions.
    """
    ctl = partial(systemd.run, "systemctl")
    ctl("start", SERVER_UNIT)
    assert _is("active", "ready")(systemd.shown(SERVER_UNIT))
    _issue(systemd)
    ctl("stop", SERVER_UNIT)

    # Without its control plane the agent is not ready, reports why, and no traffic is redirected to it.
    ctl("start", "--no-block", INTERCEPT_UNIT)
    systemd.until(AGENT_UNIT, _is("activating", "no server listens at"))
    assert systemd.shown(INTERCEPT_UNIT)["ActiveState"] == "inactive"
    assert not _rules(systemd)
    ctl("start", SERVER_UNIT)
    systemd.until(AGENT_UNIT, _is("active", "ready"))
    systemd.until(INTERCEPT_UNIT, lambda shown: shown["ActiveState"] == "active")
    assert _rules(systemd)
    systemd.run(PROGRAM, "intercept", *CAPTURED, "--check")
    listening = systemd.run("ss", "-Hltn")
    assert "127.0.0.1:80 " in listening
    assert "0.0.0.0:15006 " in listening
    first = systemd.shown(AGENT_UNIT)["MainPID"]

    # Another bootstrap is another Envoy, and the same agent.
    (systemd.folder / "srv" / "override.json").write_text('{"stats_flush_interval": "7s"}')
    systemd.until(AGENT_UNIT, lambda _: systemd.log(AGENT_UNIT).count('"envoy started"') == 2)
    assert systemd.shown(AGENT_UNIT)["MainPID"] == first

    for unit, words in ((SERVER_UNIT, "settings reloaded"), (AGENT_UNIT, "files reloaded")):
        ctl("reload", unit)
        systemd.until(unit, _says(systemd, unit, words))
        systemd.until(unit, _is("active", "ready"))

    for unit in (SERVER_UNIT, AGENT_UNIT):
        systemd.run("kill", "-STOP", systemd.shown(unit)["MainPID"])
        systemd.until(unit, lambda shown: shown["NRestarts"] != "0" and _is("active", "ready")(shown))
        assert "Fatal Python error: Aborted" in systemd.log(unit)
        assert _rules(systemd)

    ctl("stop", AGENT_UNIT, INTERCEPT_UNIT, SERVER_UNIT)
    assert not _rules(systemd)
    assert systemd.run("systemctl", "list-units", "--failed", "--no-legend") == ""
    for unit in (SERVER_UNIT, AGENT_UNIT):
        assert systemd.log(unit).count('"shutdown started"') == (2 if unit == SERVER_UNIT else 1)
    assert systemd.run("pgrep", "-x", "envoy", status=1) == ""
