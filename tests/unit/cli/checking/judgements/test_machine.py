"""Tests of the judgements of a machine with a sidecar, for each possible problem."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from meshwright.agent.interception.iptables import Redirection
from meshwright.agent.interception.rules import rules
from meshwright.agent.interception.settings import Family, Interception
from meshwright.agent.reach.reasons import Reason, UnreachableReason
from meshwright.agent.sockets import Holder, Owner
from meshwright.cli.checking.judgements import certificates, fitness
from meshwright.cli.checking.judgements.certificates import Certificate
from meshwright.cli.checking.judgements.check import Check, Status
from meshwright.cli.checking.judgements.environment import clock, machine
from meshwright.cli.checking.judgements.environment.clock import Clock
from meshwright.cli.checking.judgements.environment.machine import Agent, Envoy, Hosts, Listener
from meshwright.cli.checking.judgements.fitness import Directory
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.names import IpAddress
from meshwright.mesh.workload import Capture
from meshwright.sidecars.envoy.bootstrap.versions import NEWEST, OLDEST, Version, is_tried, read_version

NOW = datetime(2026, 5, 1, tzinfo=UTC)
CN, AT, CREDENTIALS, HOSTS = "u.s.n", HostPort("10.0.0.1", 15128), Path("/c"), Path("/etc/hosts")
DAY, SECOND = timedelta(days=1), timedelta(seconds=1)
CLOSED = UnreachableReason(Reason.PORT_CLOSED, "nobody listens", "start it")
NOBODY = UnreachableReason(Reason.WORKLOAD_UNKNOWN, "it knows no workload of u.s.n", "declare it")
LED = Redirection(frozenset({15003}), frozenset({15001}), frozenset({1500}))


def _at(port: int, uid: int = 1500, address: str = "0.0.0.0") -> Listener:
    return Listener(Owner(port, uid, 1, IpAddress(address)), (Holder(7, "envoy"),))


BOTH = (_at(15001), _at(15003))
LIVE = Envoy("LIVE", NEWEST)

FAILED = [
    (
        machine.credentials(CREDENTIALS, "", "cannot read /c/proxy.pem: Permission denied"),
        "cannot read",
        "issue",
    ),
    (
        machine.credentials(CREDENTIALS, "", "/c/k can be read: chmod 600 /c/k"),
        "/c/k can be",
        "chmod 600 /c/k",
    ),
    (
        certificates.own(Certificate(CN, NOW - 3 * DAY, NOW - DAY), NOW),
        "1 d ago by the local clock",
        "issue-proxy",
    ),
    (
        certificates.own(Certificate(CN, NOW + DAY, NOW + 2 * DAY), NOW),
        "in 1 d by the local clock",
        "set the local clock",
    ),
    (
        clock.beside_control_plane(Clock(NOW), 61 * SECOND),
        "1 min 1 s ahead of the control plane's clock",
        "peers refuse certificates",
    ),
    (clock.beside_control_plane(Clock(NOW), -2 * DAY), "2 d behind the control plane's clock", "refuse"),
    (machine.control_plane("control plane", AT, CLOSED), "port-closed: nobody listens", "start it"),
    (machine.workload(CN, NOBODY), "it knows no workload of u.s.n", "declare it"),
    (
        machine.envoy_program("envoy", "the program does not exist", None),
        "the program does not exist",
        "install Envoy",
    ),
    (machine.agent(AT, "nobody answers"), "nobody answers", "start the agent"),
    (
        machine.agent(AT, Agent(CN, ("no clusters",), (7,), reached=True)),
        "not ready: no clusters",
        "other lines",
    ),
    (machine.envoy("it does not answer", NEWEST), "it does not answer", "agent's log"),
    (machine.envoy(Envoy("DRAINING", NEWEST), NEWEST), "Envoy is in state DRAINING", "wait"),
    (
        machine.interception(Redirection(), (), (15001, 15003)),
        "expects redirected traffic at port 15001, 15003",
        "meshwright intercept",
    ),
    (machine.interception(LED, BOTH[:1], (15001, 15006)), "the proxy listens at port 15006", "the same"),
    (
        machine.interception(LED, BOTH[:1], None),
        "rules redirect inbound traffic to port 15003, but no process listens there",
        "--clean",
    ),
    (
        machine.interception(LED, (_at(15001, 0), BOTH[1]), ()),
        "outbound traffic is redirected, belongs to envoy (pid 7), running as user root (0), but the rules ",
        "run the agent as user",
    ),
    (machine.hosts_file(Hosts(HOSTS, kept=True, whole=False)), "lacks its end", "delete the rest"),
    (machine.hosts_file(Hosts(HOSTS, kept=False, error="cannot be read")), "cannot be read", "let"),
    (
        machine.hosts_file(Hosts(HOSTS, kept=True, lacking=("a", "b"))),
        "lacks 2 names: a, b",
        "write the file",
    ),
    (
        machine.application(HostPort("127.0.0.1", 8080), BOTH),
        "no process listens at 127.0.0.1:8080",
        "start the app",
    ),
    (
        machine.application(HostPort("127.0.0.1", 8080), (_at(8080, 0, "10.0.0.2"),)),
        "envoy (pid 7) as user root (0) listens at 10.0.0.2:8080, but the proxy connects to 127.0.0.1:8080",
        "or at all addresses",
    ),
    (
        machine.application(
            HostPort("127.0.0.1", 8080), (_at(8080, 0, "10.0.0.2"),), own={("10.0.0.2", 8080)}
        ),
        "no process listens at 127.0.0.1:8080, where the proxy connects to the application",
        "start the app",
    ),
    (
        fitness.directory("run directory", Directory(Path("/r"), there=False, error="no"), "--run"),
        "no",
        "--run",
    ),
]
WARNINGS = [
    (machine.interception(Redirection(), (), None), "rules that redirect traffic are missing", "Envoy"),
    (
        machine.credentials(CREDENTIALS, "", "cannot read /c/k: No such file or directory", before=True),
        "/c does not have credentials yet",
        "issue-proxy",
    ),
    (certificates.own(Certificate(CN, NOW - 3 * DAY, NOW + DAY), NOW), "1 d left", "issue-proxy"),
    (clock.beside_control_plane(Clock(NOW), 6 * SECOND), "6 s ahead", "chrony"),
    (machine.workload(CN, CLOSED), "only the control plane knows", "control plane"),
    (
        machine.envoy_program("envoy", "", Version(1, 20, 0)),
        "envoy is 1.20.0: supported versions: 1.36.4 to",
        "install a supported version",
    ),
    (
        machine.agent(AT, Agent(CN, (), (7,), reached=False, reason="port-closed")),
        "(port-closed)",
        "last configuration",
    ),
    (machine.envoy(LIVE, Version(1, 39, 3)), "the installed program is now 1.39.3", "restart the agent"),
    (machine.hosts_file(Hosts(HOSTS, kept=True)), "Envoy does not answer", "Envoy"),
    (fitness.user(4711, known=False), "no user has the uid 4711", "useradd --uid 4711"),
]
WELL = [
    machine.credentials(CREDENTIALS, CN, ""),
    certificates.own(Certificate(CN, NOW - DAY, NOW + 9 * DAY), NOW),
    clock.beside_control_plane(Clock(NOW, kept=True), -2 * SECOND),
    clock.beside_control_plane(Clock(NOW), None),
    machine.control_plane("control plane", AT, None),
    machine.workload(CN, None),
    machine.envoy_program("envoy", "", NEWEST),
    machine.agent(AT, Agent(CN, (), (7,), reached=True)),
    machine.agent(AT, Agent(CN, (), (7,), reached=False)),
    machine.envoy(LIVE, NEWEST),
    machine.interception(LED, BOTH, (15001, 15003)),
    machine.interception(LED, BOTH[:1], (15001,)),
    machine.interception(Redirection(), (), ()),
    machine.hosts_file(Hosts(HOSTS, kept=False)),
    machine.hosts_file(Hosts(HOSTS, kept=True, lacking=())),
    machine.application(HostPort("127.0.0.1", 8080), (_at(8080, 0),)),
    fitness.directory("run directory", Directory(Path("/r"), there=False), "--run"),
    fitness.user(0, known=True),
]


@pytest.mark.parametrize(
    ("found", "said", "do", "status"),
    [(*item, Status.FAILED) for item in FAILED] + [(*warning, Status.WARNING) for warning in WARNINGS],
)
def test_problem_of_a_machine_is_one_line_with_the_next_step(
    found: Check, said: str, do: str, status: Status
) -> None:
    """Each problem has its status, and its cause and next step have no newline."""
    assert found.status is status
    assert said in found.finding
    assert do in found.do
    assert "\n" not in found.finding + found.do


@pytest.mark.parametrize("found", WELL, ids=lambda item: item.name)
def test_good_state_of_a_machine_needs_no_step(found: Check) -> None:
    """A good result has a description and no next step."""
    assert (found.status, found.do) == (Status.OK, ""), found
    assert found.finding


@pytest.mark.parametrize("capture", Capture)
@pytest.mark.parametrize("family", Family)
def test_created_redirection_rules_are_read_back(capture: Capture, family: Family) -> None:
    """The excluded user and the target ports are read from the rules of both capture methods and families."""
    wanted = Interception(uid=77, capture=capture, families=frozenset({family}), outbound_port=4711)
    lines = [line for table in rules(wanted, family).values() for line in table]
    assert Redirection.by(lines) == Redirection(
        frozenset({wanted.inbound_to}), frozenset({4711}), frozenset({77})
    )
    assert Redirection.by(()) == Redirection()


def test_supported_envoy_versions_are_the_installed_ones() -> None:
    """The oldest and newest supported version are those that `make conformance` installs.

    All versions between them are supported.
    """
    names = (Path(__file__).parents[5] / "requirements" / "envoys").glob("*.txt")
    versions = sorted(Version(*map(int, re.findall(r"\d+", name.name))) for name in names)
    assert (versions[0], versions[-1]) == (OLDEST, NEWEST)
    assert all(map(is_tried, versions))
    assert not is_tried(Version(1, OLDEST.minor - 1, 9))
    assert not is_tried(Version(1, NEWEST.minor + 1, 0))
    assert is_tried(Version(1, NEWEST.minor, 99))


def test_version_is_read_from_envoy_s_output() -> None:
    """The version is read from the command line's and the admin interface's text.

    Other programs have none.
    """
    revision = "9e5580933739775e8bce696a57a2e1bc99368f23"
    assert read_version(f"\nenvoy  version: {revision}/1.40.0/Clean/RELEASE/BoringSSL\n") == Version(1, 40, 0)
    assert read_version(f"{revision}/1.41.0-dev/Modified/RELEASE/BoringSSL") == Version(1, 41, 0)
    assert read_version("nginx version: nginx/1.22.1") is None


@pytest.mark.parametrize("name", ["credentials", "certificate", "agent", "Envoy", "Envoy's program"])
def test_steps_in_a_pod_name_no_manual_installation(name: str) -> None:
    """A Pod's image has the programs, and its agent enrols with the Pod's own token."""
    failed = machine.in_a_pod(Check.failed(name, "x", "have it issued (`meshwright certs issue-proxy`)"))
    assert "issue-proxy" not in failed.do
    assert failed.finding == "x"
    assert machine.in_a_pod(Check.ok(name, "x")) == Check.ok(name, "x")
