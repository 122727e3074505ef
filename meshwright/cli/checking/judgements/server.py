"""Judgements of a server: the state directory, the sources, the proxies, and the event loop."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from meshwright.agent.reach.times import length, stamp
from meshwright.cli.checking.judgements.check import Check, counted, listed
from meshwright.cli.checking.judgements.problems import ObjectProblem, judged
from meshwright.delivery.quarantine.problems import LEFT_OUT, REJECTED

LITTLE_ROOM: Final = 128 * 1024 * 1024
"""In bytes; a ledger of ten thousand proxies with its journal takes a tenth of this."""
LATE: Final = timedelta(seconds=1)
"""A longer delay of the event loop keeps new proxies waiting, and ends TLS handshakes."""
LATELY: Final = timedelta(minutes=10)
BEHIND: Final = timedelta(seconds=30)
"""More than Envoy's wait for promised resources (15 s), with their delivery."""


@dataclass(frozen=True, slots=True)
class State:
    """A state directory: access by other users, the error of a test write, and free bytes."""

    path: Path
    there: bool
    exposed: tuple[str, ...] = ()
    unwritable: str = ""
    free: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer of a health page: the HTTP status, 0 without an answer, and the text."""

    status: int
    text: str


@dataclass(frozen=True, slots=True)
class Source:
    """A source of objects: the error and its start, held-back objects, and numbers of objects by state."""

    name: str
    error: str = ""
    since: str = ""
    held_back: tuple[str, ...] = ()
    good: int = 0
    stale: int = 0
    refused: int = 0
    age: str = ""


@dataclass(frozen=True, slots=True)
class Proxy:
    """A connected or expected proxy: state, hold, rejected types, and the longest wait for an answer.

    `lacks_workload` is True for a proxy that is served although its workload was removed.
    """

    name: str
    state: str
    is_held: bool = False
    why: str = ""
    rejects: tuple[str, ...] = ()
    waits: timedelta = timedelta()
    lacks_workload: bool = False


@dataclass(frozen=True, slots=True)
class Moment:
    """A delay of the server's event loop: time, length, and the activity during the delay."""

    at: datetime
    late: timedelta
    doing: str = ""


def state_directory(state: State, *, shared: bool = False) -> Check:
    """Judge the directory with keys and ledger; `shared` is the setting of this name."""
    name = "state directory"
    if not state.there:
        do = "give the right directory with --state, or start `meshwright serve`, which creates it"
        return Check.failed(name, f"{state.path} does not exist, or is not a directory", do)
    if state.exposed and not shared:
        first, *more = state.exposed
        # Each exposure ends in the command that corrects the mode.
        text, _, do = first.rpartition(": ")
        others = f" (and {len(more)} more)" if more else ""
        return Check.failed(name, f"{text}{others}", f"{do}, or set shared_state if that is meant")
    if state.unwritable:
        return Check.failed(
            name, state.unwritable, "free some disk space, or correct the file system or its owner"
        )
    room = f"{state.free / 2**30:.1f} GiB are free"
    if state.free < LITTLE_ROOM:
        return Check.warning(
            name,
            f"{state.path}: {room}",
            "free some disk space: state that cannot be written is lost at a restart",
        )
    kept = "is shared" if shared else "is accessible only to its owner"
    return Check.ok(name, f"{state.path} {kept} and can be written; {room}")


def ledger(known: int) -> Check:
    """Return the check for a readable ledger of the right CA, with `known` proxy certificates."""
    return Check.ok("ledger", f"readable, with {counted(known, 'proxy certificate')}")


def broken_ledger(why: str) -> Check:
    """Return the failed check for a ledger or CA with which the server cannot start."""
    # The sentence has the remedy after the semicolon.
    text, _, do = why.partition("; ")
    return Check.failed("ledger", text, do or "see docs/operate/operations.md for the remedy")


def readiness(answer: Answer) -> Check:
    """Judge the server's readiness page."""
    name, text = "readiness", answer.text.strip()
    # The first line is the answer; each further line is a remark that begins with "but: ".
    first, *remarks = text.splitlines() or [""]
    if not answer.status:
        return Check.failed(name, text, "look at `port HTTP`, and at the server's log")
    if answer.status != 200:
        return Check.failed(
            name, first, "wait if the server has just started; otherwise see its log for the reason"
        )
    if remarks:
        message = "; ".join(remark.removeprefix("but: ") for remark in remarks)
        return Check.warning(name, message, "correct this; see docs/operate/operations.md")
    return Check.ok(name, "the server is ready, without warnings")


def source(result: Source) -> Check:
    """Judge one source of objects."""
    name = f"source {result.name}"
    if result.error:
        since = f" (since {result.since})" if result.since else ""
        do = "correct the error; until then the last objects of this source stay in force"
        return Check.failed(name, f"degraded: {result.error}{since}", do)
    if result.refused or result.stale:
        bad = f"{counted(result.refused, 'object')} refused, {result.stale} in force in an older form"
        return Check.failed(
            name, bad, "for the objects and the reasons: `/debug/policies` or `meshwright lint`"
        )
    if result.held_back:
        do = (
            "if the objects were deleted on purpose, wait: the deletion takes effect soon (see "
            "`meshwright sources`); otherwise restore them"
        )
        return Check.warning(
            name, f"deletion delayed, because all objects disappeared at once: {listed(result.held_back)}", do
        )
    read = f", read {result.age} ago" if result.age else ""
    return Check.ok(name, f"{counted(result.good, 'object')} in force{read}")


def problems(object_problems: Sequence[ObjectProblem]) -> Check:
    """Judge the problems of policy objects, except rejections by proxies."""
    others = [
        object_problem
        for object_problem in object_problems
        if object_problem.code not in (REJECTED, LEFT_OUT)
    ]
    do = "for the whole list: `meshwright lint` or `/debug/policies`"
    return judged("problems", others, do, "no problems found")


def rejections(proxies: Sequence[Proxy], object_problems: Sequence[ObjectProblem]) -> Check:
    """Judge the resources rejected by proxies."""
    who = [f"{proxy.name} ({', '.join(proxy.rejects)})" for proxy in proxies if proxy.rejects]
    why = next(
        (object_problem.line for object_problem in object_problems if object_problem.code == REJECTED), ""
    )
    if not who and not why:
        return Check.ok("rejections", "proxies accept all resources")
    text = f"rejected by {listed(who) or 'a proxy that has disconnected'}" + (f": {why}" if why else "")
    do = "correct the named object; to send the resource again at once: `meshwright proxy retry NAME`"
    return Check.failed("rejections", text, do)


def withheld(object_problems: Sequence[ObjectProblem], failures: Sequence[str]) -> Check:
    """Judge parts of policy excluded for some proxies, and groups of proxies with outdated configuration."""
    left = [object_problem for object_problem in object_problems if object_problem.code == LEFT_OUT]
    if failures:
        text = f"{counted(len(failures), 'group')} of proxies cannot get new configuration: {failures[0]}"
        return Check.failed(
            "withheld",
            text,
            "correct the named object; until then these proxies keep their last configuration (see "
            "/debug/policies)",
        )
    do = "correct the named match, or remove it"
    return judged("withheld", left, do, "every part of policy is in force")


def connected(proxies: Sequence[Proxy]) -> Check:
    """Judge whether all expected proxies are connected."""
    by = {state: [proxy for proxy in proxies if proxy.state == state] for state in ("connected", "expected")}
    gone = [proxy for proxy in proxies if proxy.state == "disconnected"]
    counts = f"{len(by['connected'])} connected, {len(by['expected'])} expected, {len(gone)} disconnected"
    if gone:
        text = f"{counts}: {listed(_proxy_text(proxy) for proxy in gone)}"
        return Check.failed(
            "proxies",
            text,
            "for the reason, run `meshwright agent check` on the proxy's machine (for a Pod: "
            "`kubectl exec POD -c meshwright-sidecar -- ...`)",
        )
    if held := [proxy for proxy in proxies if proxy.is_held]:
        do = "create a Workload for the proxy, or issue its certificate for the name of the Workload"
        return Check.failed(
            "proxies", f"connected, but without configuration: {listed(map(_proxy_text, held))}", do
        )
    if orphans := [proxy.name for proxy in by["connected"] if proxy.lacks_workload]:
        do = "stop the agent of the proxy, or declare its Workload again"
        return Check.warning("proxies", f"{counts}: the workload of {listed(orphans)} is gone", do)
    if by["expected"]:
        text = f"{counts}: {listed(_proxy_text(proxy) for proxy in by['expected'])}"
        do = "start the agent, or run `meshwright agent check` on the proxy's machine"
        return Check.warning("proxies", text, do)
    return Check.ok("proxies", counts if proxies else "no workload has a sidecar")


def in_step(proxies: Sequence[Proxy]) -> Check:
    """Judge whether connected proxies acknowledge new configuration in time."""
    here = [proxy for proxy in proxies if proxy.state == "connected"]
    if behind := [proxy for proxy in here if proxy.waits > BEHIND]:
        text = listed(f"{proxy.name} for {length(proxy.waits)} ({proxy.why})" for proxy in behind)
        return Check.failed(
            "in step", f"behind: {text}", "see `meshwright proxy show NAME`, and the log of its Envoy"
        )
    return Check.ok(
        "in step", f"{len(here)} of {len(here)} connected proxies have acknowledged their configuration"
    )


def _proxy_text(proxy: Proxy) -> str:
    return f"{proxy.name} ({proxy.why})" if proxy.why else proxy.name


def event_loop(alive: Answer, moments: Sequence[Moment], now: datetime) -> Check:
    """Judge the recent delays of the event loop."""
    name = "event loop"
    # The liveness page has its own thread, so it answers even while the event loop is blocked.
    if alive.status == 503:
        do = "see the server's log for the cause; restart the server if this state lasts"
        return Check.failed(name, alive.text.strip(), do)
    late = [moment for moment in moments if now - moment.at < LATELY and moment.late >= LATE]
    if not late:
        return Check.ok(name, f"never blocked for {length(LATE)} or longer in the last {length(LATELY)}")
    most = max(late, key=lambda moment: (moment.late, moment.at))
    doing = f", during {most.doing}" if most.doing else ""
    text = (
        f"blocked {counted(len(late), 'time')} in the last {length(LATELY)} (longest: "
        f"{most.late.total_seconds():.1f} s{doing})"
    )
    do = f"give the server more CPU; see `/debug/loop` for all moments, the longest at {stamp(most.at)}"
    return Check.warning(name, text, do)
