"""Tests of the judgements of a server, for each possible problem."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from meshwright.agent.sockets import Holder
from meshwright.cli.checking.judgements import certificates, fitness, server
from meshwright.cli.checking.judgements.certificates import Certificate
from meshwright.cli.checking.judgements.check import Check, Status, UnavailableCheck, worst
from meshwright.cli.checking.judgements.environment import clock, ports
from meshwright.cli.checking.judgements.environment.clock import Clock
from meshwright.cli.checking.judgements.environment.ports import Port
from meshwright.cli.checking.judgements.problems import ObjectProblem
from meshwright.cli.checking.judgements.server import Answer, Moment, Proxy, Source, State
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.problems.problem import Severity

NOW = datetime(2026, 5, 1, tzinfo=UTC)
STATE = State(Path("/s"), there=True, free=2**40)
CN = "u.s.n"
REJECTED = ObjectProblem("resource-rejected", Severity.ERROR, "workload n/w: cluster n/x: no such address")


def _lived(start: timedelta, end: timedelta, whose: str = CN) -> Certificate:
    return Certificate(whose, NOW + start, NOW + end)


YEAR, DAY, MINUTE, NONE = timedelta(days=365), timedelta(days=1), timedelta(minutes=1), timedelta()
PORT = Port("HTTP", "--http-address", HostPort("127.0.0.1", 9091), taken=True, holders=(Holder(7, "nginx"),))
FREE = Port("HTTP", "--http-address", HostPort("127.0.0.1", 9091), taken=False)

FAILED = [
    (server.state_directory(State(Path("/s"), there=False)), "/s does not exist", "--state"),
    (
        server.state_directory(
            State(Path("/s"), there=True, exposed=("/s/ca can be read: chmod 700 /s/ca",))
        ),
        "/s/ca can be read",
        "chmod 700 /s/ca, or set shared_state",
    ),
    (
        server.state_directory(State(Path("/s"), there=True, unwritable="/s cannot be written: full")),
        "/s cannot be written: full",
        "free some disk space",
    ),
    (server.broken_ledger("ledger /l is missing; put it back"), "ledger /l is missing", "put it back"),
    (server.readiness(Answer(503, "waiting for: first snapshots\n")), "waiting for: first snapshots", "log"),
    (server.readiness(Answer(0, "nobody answers at 1:1")), "nobody answers", "port HTTP"),
    (server.source(Source("directory", error="gone", since="9:00")), "gone (since 9:00)", "stay in force"),
    (server.source(Source("directory", good=3, refused=2)), "2 objects refused", "meshwright lint"),
    (server.source(Source("directory", good=3, stale=1)), "1 in force in an older form", "meshwright lint"),
    (
        server.problems((ObjectProblem("MW1", Severity.ERROR, "the line"),)),
        "1 error, 0 warnings; the line",
        "lint",
    ),
    (
        server.rejections((Proxy(CN, "connected", rejects=("CDS",)),), (REJECTED,)),
        "rejected by u.s.n (CDS): workload",
        "retry",
    ),
    (server.rejections((), (REJECTED,)), "no such address", "correct the named object"),
    (server.withheld((), ("g: no",)), "1 group of proxies cannot get new configuration: g: no", "keep their"),
    (
        server.withheld((ObjectProblem("policy-left-out", Severity.ERROR, "route x"),), ()),
        "1 error, 0 warnings; route x",
        "correct the named match",
    ),
    (
        server.connected((Proxy(CN, "disconnected", why="gone for 3 s"), Proxy("v", "connected"))),
        "1 connected, 0 expected, 1 disconnected: u.s.n (gone for 3 s)",
        "agent check",
    ),
    (
        server.connected((Proxy(CN, "connected", is_held=True),)),
        "without configuration: u.s.n",
        "create a Workload",
    ),
    (
        server.in_step((Proxy(CN, "connected", why="CDS unanswered", waits=timedelta(seconds=31)),)),
        "u.s.n for 31 s (CDS unanswered)",
        "proxy show",
    ),
    (
        server.event_loop(Answer(503, "the event loop is blocked\n"), (), NOW),
        "is blocked",
        "restart the server",
    ),
    (
        certificates.authority(_lived(-YEAR, -DAY), NOW),
        "the CA certificate expired at 2026-04-30T00:00:00Z",
        "join again with tokens",
    ),
    (
        certificates.judge_files_of_other(None, NOW, "/ca"),
        "the CA certificate is missing in /ca",
        "put a valid CA into /ca",
    ),
    (
        certificates.judge_files_of_other(_lived(-YEAR, -DAY), NOW, "/ca"),
        "the CA certificate in /ca expired at 2026-04-30T00:00:00Z",
        "uses it at once",
    ),
    (
        certificates.authority(_lived(DAY, YEAR), NOW),
        "is valid from 2026-05-02T00:00:00Z",
        "set the clock",
    ),
    (certificates.services((_lived(-DAY, -MINUTE),), NOW), "expired: u.s.n", "log"),
    (
        certificates.proxies((_lived(-DAY, -MINUTE),), NOW),
        "expired: u.s.n (at 2026-04-30T23:59",
        "issue-proxy",
    ),
    (clock.beside_certificates(Clock(NOW), (NOW - DAY, NOW + DAY)), "behind by 1 d or more", "chrony"),
    (ports.free(PORT), "127.0.0.1:9091 is in use by nginx (pid 7)", "--http-address"),
    (ports.ours(PORT, (8,)), "another program listens at 127.0.0.1:9091: nginx (pid 7)", "--http-address"),
    (ports.ours(FREE, (8,)), "no process listens at 127.0.0.1:9091", "restart the server"),
    (fitness.python((3, 10, 1), "Linux"), "Python 3.10.1 on Linux", "3.11 or newer"),
    (fitness.python((3, 12, 1), "Darwin"), "Python 3.12.1 on Darwin", "Linux"),
    (fitness.mesh(Path("m"), 0, (), "m is not there"), "m is not there", "--mesh"),
    (
        fitness.mesh(Path("m"), 2, (ObjectProblem("MW1", Severity.ERROR, "the line"),)),
        "m has 2 objects: 1 error, 0 warnings; the line",
        "meshwright lint m",
    ),
    (fitness.program("iptables", None, "for rules", "install it"), "for rules", "install it"),
]
WARNINGS = [
    (
        server.state_directory(State(Path("/s"), there=True, free=2**20)),
        "0.0 GiB are free",
        "free some disk space",
    ),
    (server.readiness(Answer(200, "ready\nbut: the disk is full\n")), "the disk is full", "operations"),
    (server.source(Source("dns", good=1, held_back=("a", "b", "c", "d"))), "a, b, c and 1 more", "sources"),
    (
        server.problems((ObjectProblem("MW2", Severity.WARNING, "the line"),)),
        "0 errors, 1 warning; the line",
        "lint",
    ),
    (
        server.connected((Proxy(CN, "connected", lacks_workload=True), Proxy("v", "connected"))),
        "2 connected, 0 expected, 0 disconnected: the workload of u.s.n is gone",
        "stop the agent",
    ),
    (server.connected((Proxy(CN, "expected"),)), "0 connected, 1 expected, 0 disconnected: u.s.n", "agent"),
    (
        server.event_loop(
            Answer(200, "alive"), (Moment(NOW - MINUTE, timedelta(seconds=2), "reading"),), NOW
        ),
        "blocked 1 time in the last 10 min (longest: 2.0 s, during reading)",
        "/debug/loop",
    ),
    (certificates.authority(_lived(-YEAR, timedelta(days=179)), NOW), "179 d left", "certs rotate-root"),
    (certificates.services((_lived(-DAY, DAY / 4),), NOW), "1 renewal overdue: u.s.n", "log"),
    (certificates.proxies((_lived(-YEAR, DAY),), NOW), "u.s.n (1 d left)", "issue-proxy"),
    (ports.ours(Port("ADS", "--ads-address", PORT.address, taken=True), (8,)), "not visible", "as root"),
    (
        Check.unseen("ledger", UnavailableCheck("timed out after 8 s")),
        "unknown: timed out after 8 s",
        "try",
    ),
]
WELL = [
    server.state_directory(STATE),
    server.state_directory(State(Path("/s"), there=True, exposed=("x",), free=2**40), shared=True),
    server.ledger(1),
    server.readiness(Answer(200, "ready\n")),
    server.source(Source("directory", good=3, age="3 s")),
    server.problems((REJECTED, ObjectProblem("MW3", Severity.INFO, "by the way"))),
    server.rejections((Proxy(CN, "connected"),), ()),
    server.withheld((REJECTED,), ()),
    server.connected((Proxy(CN, "connected"),)),
    server.in_step((Proxy(CN, "connected", waits=timedelta(seconds=1)), Proxy("v", "expected", waits=DAY))),
    server.event_loop(Answer(200, "alive"), (Moment(NOW - DAY, timedelta(seconds=2)),), NOW),
    certificates.authority(_lived(-DAY, YEAR), NOW),
    certificates.judge_files_of_other(_lived(-DAY, DAY), NOW, "/ca"),
    certificates.services((_lived(-MINUTE, DAY),), NOW),
    certificates.proxies((_lived(-DAY, YEAR),), NOW),
    clock.beside_certificates(Clock(NOW, kept=False), (NOW - DAY,)),
    ports.free(FREE),
    ports.ours(PORT, (7,)),
    ports.ours(Port("HTTP", "--http-address", HostPort("::", 0), taken=False), (7,)),
    fitness.python((3, 11, 0), "Linux"),
    fitness.mesh(Path("m"), 1, ()),
]


@pytest.mark.parametrize(
    ("found", "said", "do", "status"),
    [(*item, Status.FAILED) for item in FAILED] + [(*warning, Status.WARNING) for warning in WARNINGS],
)
def test_problem_of_a_server_is_one_line_with_the_next_step(
    found: Check, said: str, do: str, status: Status
) -> None:
    """Each problem has its status, and its cause and next step have no newline."""
    assert found.status is status
    assert said in found.finding
    assert do in found.do
    assert "\n" not in found.finding + found.do


@pytest.mark.parametrize("found", WELL, ids=lambda item: item.name)
def test_good_state_of_a_server_needs_no_step(found: Check) -> None:
    """A good result has a description and no next step."""
    assert (found.status, found.do) == (Status.OK, ""), found
    assert found.finding


def test_worst_status_of_all_checks_counts() -> None:
    """The result is the worst status; without checks it is good."""
    assert worst(()) is Status.OK
    assert worst((Check.ok("a", "x"), Check.warning("b", "x", "y"))) is Status.WARNING
    assert worst((Check.failed("a", "x", "z"), Check.warning("b", "x", "y"))) is Status.FAILED
