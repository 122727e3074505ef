"""Tests of the rules in real network namespaces: captured traffic, passed traffic, original destinations."""

import os
import shutil
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path
from socket import AF_INET, AF_INET6, AddressFamily

import pytest

from meshwright.agent.interception.iptables import Backend, check, put
from meshwright.agent.interception.ports import PortRange
from meshwright.agent.interception.settings import Family, Interception
from meshwright.mesh.names import InterfaceName
from meshwright.mesh.workload import Capture
from meshwright.sidecars.layout import INBOUND_PORT, TPROXY_PORT
from tests.e2e.agent.conftest import missing_for_namespaces
from tests.e2e.agent.machines import (
    APPLICATION_UID,
    CLIENT,
    LOOPBACK,
    PROXY_UID,
    WORKLOAD,
    Answer,
    Machine,
    Servers,
    answer,
    call,
    machine,
    pair,
)

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(bool(missing_for_namespaces()), reason=missing_for_namespaces() or "it can run"),
]
BOTH = Interception(families=frozenset(Family))
TPROXY = replace(BOTH, capture=Capture.TPROXY)
FAMILIES = pytest.mark.parametrize("family", [AF_INET, AF_INET6])
BACKENDS = pytest.mark.parametrize(
    "backend",
    [
        Backend.NFT,
        pytest.param(
            Backend.LEGACY,
            marks=pytest.mark.skipif(
                shutil.which("iptables-legacy-restore") is None, reason="there is no iptables-legacy"
            ),
        ),
    ],
)
APPLICATION, EXCLUDED = 8080, 15020


@pytest.mark.parametrize("family", [AF_INET, AF_INET6])
def test_interception_is_refused_if_another_user_owns_the_proxy_port(family: AddressFamily) -> None:
    """Rules are refused if the agent runs as root, because its own traffic would come back to it.

    A port without a listener is accepted.
    """
    with pair() as (machine, _):
        command = [str(Path(sys.executable).parent / "meshwright"), "intercept", "--ipv6"]
        machine.run(*command)
        machine.run(*command, "--clean")
        servers = Servers(machine)
        try:
            servers.listen("outbound", family, 15001, 0)
            servers.listen("inbound", family, 15003, PROXY_UID)
            done = machine.run(*command, check=False)
            assert (done.returncode, done.stdout) == (2, "")
            assert "port 15001, to which outbound traffic is redirected, belongs to " in done.stderr
            assert f"(pid {os.getpid()}), running as user root (0), but the rules exempt only" in done.stderr
            assert "run the agent as user 1500, or give --uid 0 if the proxy has its own user" in done.stderr
            assert "MESH_" not in machine.run("iptables-save").stdout
            checked = machine.run(*command, "--check", check=False)
            assert (checked.returncode, "port 15001, to which" in checked.stdout) == (1, True)
            machine.run(*command, "--no-outbound")
            assert machine.run(*command, "--no-outbound", "--check").stdout == "interception is as wanted\n"
        finally:
            servers.close()


def test_agent_whose_own_traffic_would_be_captured_does_not_start(tmp_path: Path) -> None:
    """The agent refuses to start as root if the rules exempt another user, because its traffic would loop."""
    program = str(Path(sys.executable).parent / "meshwright")
    start = [program, "agent", "--credentials", str(tmp_path), "--ads", "127.0.0.1:1"]
    start += ["--run", str(tmp_path / "run"), "--log-level", "error"]
    with machine() as here:
        here.run(program, "intercept", "--no-inbound")
        done = here.run(*start, check=False)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert (
            "the agent runs as user root (0), but the interception rules of this machine exempt only the "
            "traffic of user 1500, so the traffic of the proxy would be redirected to the proxy itself"
        ) in done.stderr
        assert "run the agent as user 1500" in done.stderr
        here.run(program, "intercept", "--no-inbound", "--uid", "0")
        assert "cannot read" in here.run(*start, check=False).stderr, "it comes as far as its credentials"


class Scene:
    """A workload with an application and a proxy, and an external client with servers."""

    def __init__(self, workload: Machine, client: Machine) -> None:
        self.workload = workload
        self.client = client
        self.servers = Servers(workload)
        self.outside = Servers(client)

    def open(self, *, transparent: bool = False) -> None:
        """Start all servers for both families."""
        for family in (AF_INET, AF_INET6):
            for port in (APPLICATION, EXCLUDED):
                self.servers.listen("application", family, port, APPLICATION_UID)
            self.servers.listen("outbound", family, 15001, PROXY_UID)
            port = TPROXY_PORT if transparent else INBOUND_PORT
            self.servers.listen("inbound", family, port, PROXY_UID, transparent=transparent)
            for port in (80, 5432):
                self.outside.listen("outside", family, port, APPLICATION_UID)

    def intercept(self, wanted: Interception | None, backend: Backend = Backend.AUTO) -> bool:
        """Set the rules in the workload's namespace."""
        return self.workload.do(lambda: put(wanted, backend))

    def differs(self, wanted: Interception | None, backend: Backend = Backend.AUTO) -> tuple[str, ...]:
        """Return the differences from the wanted rules in the workload's namespace."""
        return self.workload.do(lambda: check(wanted, backend))

    def from_client(self, family: AddressFamily, port: int) -> Answer | None:
        """Call the workload from outside."""
        return call(self.client, family, 0, WORKLOAD[family], port)

    def from_workload(self, family: AddressFamily, host: str, port: int, uid: int) -> Answer | None:
        """Call from the workload's machine."""
        return call(self.workload, family, uid, host, port)


@pytest.fixture
def scene() -> Iterator[Scene]:
    """Two machines, whose servers end with the test."""
    with pair() as (workload, client):
        made = Scene(workload, client)
        yield made
        made.servers.close()
        made.outside.close()


@FAMILIES
@BACKENDS
def test_redirect_captures_traffic_except_the_proxy_loopback_and_exclusions(
    scene: Scene, family: AddressFamily, backend: Backend
) -> None:
    """Inbound and outbound traffic reaches the proxy with its original destination.

    The proxy's own traffic, loopback and excluded ports pass.
    """
    scene.open()
    scene.intercept(BOTH, backend)
    mine, other, client = WORKLOAD[family], CLIENT[family], CLIENT[family]
    application, proxy = APPLICATION_UID, PROXY_UID

    answers = {
        "in": scene.from_client(family, APPLICATION),
        "in, excluded": scene.from_client(family, EXCLUDED),
        "out": scene.from_workload(family, other, 80, application),
        "out, root": scene.from_workload(family, other, 80, 0),
        "out, to no one": scene.from_workload(family, other, 81, application),
        "out, proxy": scene.from_workload(family, other, 80, proxy),
        "loopback": scene.from_workload(family, LOOPBACK[family], APPLICATION, application),
        "loopback, proxy": scene.from_workload(family, LOOPBACK[family], APPLICATION, proxy),
        "itself by address": scene.from_workload(family, mine, APPLICATION, application),
        "itself by its proxy": scene.from_workload(family, mine, APPLICATION, proxy),
        "itself by its proxy, excluded": scene.from_workload(family, mine, EXCLUDED, proxy),
    }

    loopback = LOOPBACK[family]
    assert answers == {
        "in": Answer("inbound", (mine, APPLICATION), client),
        "in, excluded": Answer("application", (mine, EXCLUDED), client),
        "out": Answer("outbound", (other, 80), mine),
        "out, root": Answer("outbound", (other, 80), mine),
        "out, to no one": Answer("outbound", (other, 81), mine),
        "out, proxy": Answer("outside", (other, 80), mine),
        "loopback": Answer("application", (loopback, APPLICATION), loopback),
        "loopback, proxy": Answer("application", (loopback, APPLICATION), loopback),
        "itself by address": Answer("application", (mine, APPLICATION), mine),
        "itself by its proxy": Answer("inbound", (mine, APPLICATION), mine),
        "itself by its proxy, excluded": Answer("application", (mine, EXCLUDED), mine),
    }


@FAMILIES
@BACKENDS
def test_tproxy_keeps_the_client_address_and_passes_the_same_exceptions(
    scene: Scene, family: AddressFamily, backend: Backend
) -> None:
    """The inbound socket's local address is the original destination, and the client's address is kept.

    The exceptions are the same as with REDIRECT.
    """
    scene.open(transparent=True)
    scene.intercept(TPROXY, backend)
    mine, other = WORKLOAD[family], CLIENT[family]

    answers = {
        "in": scene.from_client(family, APPLICATION),
        "in, excluded": scene.from_client(family, EXCLUDED),
        "out": scene.from_workload(family, other, 80, APPLICATION_UID),
        "out, proxy": scene.from_workload(family, other, 80, PROXY_UID),
        "loopback, proxy": scene.from_workload(family, LOOPBACK[family], APPLICATION, PROXY_UID),
        "itself by address": scene.from_workload(family, mine, APPLICATION, APPLICATION_UID),
        "itself by its proxy": scene.from_workload(family, mine, APPLICATION, PROXY_UID),
        "itself by its proxy, excluded": scene.from_workload(family, mine, EXCLUDED, PROXY_UID),
    }

    loopback = LOOPBACK[family]
    assert answers == {
        "in": Answer("inbound", (mine, APPLICATION), other),
        "in, excluded": Answer("application", (mine, EXCLUDED), other),
        "out": Answer("outbound", (other, 80), mine),
        "out, proxy": Answer("outside", (other, 80), mine),
        "loopback, proxy": Answer("application", (loopback, APPLICATION), loopback),
        "itself by address": Answer("application", (mine, APPLICATION), mine),
        "itself by its proxy": Answer("inbound", (mine, APPLICATION), mine),
        "itself by its proxy, excluded": Answer("application", (mine, EXCLUDED), mine),
    }


@FAMILIES
def test_included_and_excluded_ports_and_ranges_decide_capture(scene: Scene, family: AddressFamily) -> None:
    """Ports and ranges, included and excluded, are tested on both sides of their bounds."""
    scene.open()
    other = CLIENT[family]
    near, far = (
        ip_network(f"{other}/{24 if family is AF_INET else 64}", strict=False),
        ip_network("192.0.2.0/24" if family is AF_INET else "2001:db8::/32"),
    )
    only = replace(BOTH, families=frozenset({Family.IPV4 if family is AF_INET else Family.IPV6}))

    def who(wanted: Interception, port: int = 80) -> str:
        scene.intercept(wanted)
        result = scene.from_workload(family, other, port, APPLICATION_UID)
        return result.who if result else "nobody"

    port = (PortRange(5432, 5432),)
    outbound = [
        (replace(only, outbound_excluded=port), "outbound", "outside"),
        (replace(only, outbound_included=port), "outside", "outbound"),
        (replace(only, ranges_excluded=(near,)), "outside", "outside"),
        (replace(only, ranges_excluded=(far,)), "outbound", "outbound"),
        (replace(only, ranges_included=(near,)), "outbound", "outbound"),
        (replace(only, ranges_included=(far,)), "outside", "outside"),
        (replace(only, ranges_included=(near,), outbound_included=port), "outside", "outbound"),
    ]
    assert [(who(wanted), who(wanted, 5432)) for wanted, *_ in outbound] == [
        (at_80, at_5432) for _, at_80, at_5432 in outbound
    ]
    many = tuple(PortRange(number, number) for number in range(EXCLUDED - 20, EXCLUDED + 1, 2))
    for wanted, expected in (
        (replace(only, inbound_included=(PortRange(8000, 8999),)), ("inbound", "application")),
        (replace(only, inbound_included=(PortRange(8081, 8999),)), ("application", "application")),
        (
            replace(only, inbound_excluded=(*many, *(PortRange(p, p) for p in range(1, 41, 2)))),
            ("inbound", "application"),
        ),
        (replace(only, inbound_excluded=()), ("inbound", "inbound")),
        (replace(only, inbound=False), ("application", "application")),
    ):
        scene.intercept(wanted)
        answers = [scene.from_client(family, number) for number in (APPLICATION, EXCLUDED)]
        assert tuple(item.who if item else "" for item in answers) == expected, wanted


@pytest.mark.parametrize("wanted", [BOTH, TPROXY], ids=["redirect", "tproxy"])
def test_excluded_interface_is_not_captured_in_either_direction(scene: Scene, wanted: Interception) -> None:
    """Traffic of an excluded second interface, as Multus gives to a pod, passes in both directions.

    Traffic of eth0 is captured as before, and the other way round if eth0 is excluded.
    """
    scene.open(transparent=wanted.capture is Capture.TPROXY)
    scene.workload.run(
        "ip", "-batch", "-", given=f"link add net1 type veth peer name net1 netns {scene.client.pid}\n"
    )
    for item, last in ((scene.workload, 1), (scene.client, 2)):
        lines = f"address add 10.251.0.{last}/24 dev net1\nlink set net1 up\n"
        item.run("ip", "-batch", "-", given=lines)

    def who(excluded: str) -> tuple[str, ...]:
        names = (InterfaceName(excluded),) if excluded else ()
        other = replace(wanted, families=frozenset({Family.IPV4}), interfaces_excluded=names)
        assert scene.intercept(other)
        assert scene.differs(other) == ()
        answers = (
            call(scene.client, AF_INET, 0, "10.251.0.1", APPLICATION),
            scene.from_workload(AF_INET, "10.251.0.2", 80, APPLICATION_UID),
            scene.from_client(AF_INET, APPLICATION),
            scene.from_workload(AF_INET, CLIENT[AF_INET], 80, APPLICATION_UID),
            scene.from_workload(AF_INET, "10.251.0.1", APPLICATION, PROXY_UID),
        )
        return tuple(item.who if item else "nobody" for item in answers)

    led = ("inbound", "outbound")
    assert who("") == (*led, *led, "inbound")
    for excluded in ("net1", "net+"):
        assert who(excluded) == ("application", "outside", *led, "inbound")
    assert who("eth0") == (*led, "application", "outside", "inbound")


@BACKENDS
@pytest.mark.parametrize(
    "wanted", [BOTH, TPROXY, replace(BOTH, inbound=False), replace(BOTH, outbound=False)]
)
def test_rules_are_set_once_checked_repaired_and_removed(
    scene: Scene, wanted: Interception, backend: Backend
) -> None:
    """Setting the same rules again changes nothing.

    An added, flushed or duplicated rule is reported and repaired, and removal leaves nothing of ours.
    """
    before = scene.differs(None, backend)
    put_first, put_again = scene.intercept(wanted, backend), scene.intercept(wanted, backend)
    assert (before, put_first, put_again, scene.differs(wanted, backend)) == ((), True, False, ())

    program = f"iptables-{backend}"
    for spoiling in (
        ("-t", "nat", "-I", "MESH_OUTBOUND", "-p", "tcp", "-j", "RETURN"),
        ("-t", "nat", "-F", "MESH_OUTBOUND"),
        ("-t", "nat", "-A", "OUTPUT", "-p", "tcp", "-j", "MESH_OUTBOUND"),
    ):
        if scene.workload.run(program, *spoiling, check=False).returncode:
            continue  # this case has no such chain
        assert scene.differs(wanted, backend) != ()
        assert scene.intercept(wanted, backend)
        assert scene.differs(wanted, backend) == ()

    assert scene.intercept(None, backend)
    assert not scene.intercept(None, backend)
    rest = [scene.workload.run(f"{ip}-{backend}-save").stdout for ip in ("iptables", "ip6tables")]
    rest += [scene.workload.run("ip", version, "rule").stdout for version in ("-4", "-6")]
    assert not any("MESH" in text or "fwmark" in text for text in rest)


def test_foreign_rules_are_kept(scene: Scene) -> None:
    """A foreign rule stays in its place while ours are set, changed and removed."""
    foreign = ("-t", "nat", "-A", "OUTPUT", "-p", "tcp", "--dport", "81", "-j", "RETURN")
    scene.workload.run("iptables", *foreign)
    scene.intercept(BOTH)
    scene.intercept(replace(BOTH, uid=7))
    scene.intercept(None)
    assert scene.workload.run("iptables", "-t", "nat", "-S", "OUTPUT").stdout.splitlines() == [
        "-P OUTPUT ACCEPT",
        "-A OUTPUT -p tcp -m tcp --dport 81 -j RETURN",
    ]


@pytest.mark.parametrize("wanted", [BOTH, TPROXY])
def test_toggling_rules_under_load_loses_no_connection(scene: Scene, wanted: Interception) -> None:
    """No new connection fails while the rules change, and a connection older than the rules stays usable."""
    scene.open(transparent=wanted.capture is Capture.TPROXY)
    outcomes: Counter[str] = Counter()
    enough = threading.Event()

    def load() -> None:
        while not enough.is_set():
            for family in (AF_INET, AF_INET6):
                try:
                    outcomes[answer(scene.client, family, 0, WORKLOAD[family], APPLICATION).who] += 1
                except OSError as error:
                    outcomes[f"{family.name} {error}"] += 1

    with ThreadPoolExecutor(2) as executor, _old_connection(scene) as old:
        loads = [executor.submit(load) for _ in range(2)]
        try:
            other = replace(wanted, outbound_excluded=(PortRange(7, 7),))
            for state in (wanted, None, wanted, other, wanted, None):
                seen = outcomes.total()
                while outcomes.total() < seen + 40:
                    time.sleep(0.005)
                scene.intercept(state)
                assert _talk(*old)
        finally:
            enough.set()
        for future in loads:
            future.result()
    assert set(outcomes) == {"application", "inbound"}


@contextmanager
def _old_connection(scene: Scene) -> Iterator[tuple[socket.socket, socket.socket]]:
    """Connect the two machines by a long-lived connection."""
    with scene.workload.socket(AF_INET, APPLICATION_UID) as server:
        server.bind(("", 9999))
        server.listen()
        client = scene.client.socket(AF_INET, 0)
        client.connect((WORKLOAD[AF_INET], 9999))
        accepted, _ = server.accept()
        accepted.settimeout(15)
    with client, accepted:
        yield client, accepted


def _talk(one: socket.socket, other: socket.socket) -> bool:
    """Send a word in each direction."""
    one.sendall(b"ping")
    heard = other.recv(4)
    other.sendall(heard)
    return one.recv(4) == b"ping"


def test_intercept_command_sets_checks_and_removes_the_rules(scene: Scene, meshwright: str) -> None:
    """The command sets the rules once, reports differences with status 1, and removes the rules.

    A dry run changes nothing, and an invalid range is refused with a message.
    """
    run = scene.workload.run
    outcomes = [
        run(meshwright, "intercept", *flags, check=False)
        for flags in ((), (), ("--check",), ("--check", "--uid", "7"), ("--clean",), ("--check",))
    ]
    assert [outcome.returncode for outcome in outcomes] == [0, 0, 0, 1, 0, 1]
    on, closed = outcomes[0].stdout.splitlines()
    assert on == "interception is on"
    assert closed.startswith("the proxy blocks calls to hosts outside the mesh, unless the MeshConfig has")
    assert outcomes[1].stdout == "interception was on already, with the same rules\n"
    dry = run(meshwright, "intercept", "--dry-run", "--ipv6")
    assert "*nat" in dry.stdout
    assert "MESH" not in run("iptables-save").stdout
    refused = run(meshwright, "intercept", "--exclude-outbound-ranges", "10.0.0.1/8", check=False)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == (
        "meshwright: --exclude-outbound-ranges is '10.0.0.1/8': 10.0.0.1/8 has host bits set\n"
    )
