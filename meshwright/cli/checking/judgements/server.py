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
    """A source: the error and its start, held-back objects, and numbers of objects."""

    name: str
    error: str = ""
    since: str = ""
    held: tuple[str, ...] = ()
    good: int = 0
    stale: int = 0
    refused: int = 0
    age: str = ""


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy: name, state, whether held, cause of a delay, rejected types, and longest wait."""

    name: str
    state: str
    held: bool = False
    why: str = ""
    rejects: tuple[str, ...] = ()
    waits: timedelta = timedelta()


@dataclass(frozen=True, slots=True)
class Moment:
    """A delay of the event loop: time, length, and the activity at fault."""

    at: datetime
    late: timedelta
    doing: str = ""


def state_directory(found: State, *, shared: bool = False) -> Check:
    """Judge the directory with keys and ledger; `shared` is the setting of this name."""
    name = "state directory"
    if not found.there:
        do = "give the right directory with --state, or start `meshwright serve`, which creates it"
        return Check.failed(name, f"{found.path} does not exist, or is not a directory", do)
    if found.exposed and not shared:
        first, *more = found.exposed
        # Each exposure ends in the command that corrects the mode.
        said, _, do = first.rpartition(": ")
        others = f" (and {len(more)} more)" if more else ""
        return Check.failed(name, f"{said}{others}", f"{do}, or set shared_state if that is meant")
    if found.unwritable:
        return Check.failed(
            name, found.unwritable, "free some disk space, or correct the file system or its owner"
        )
    room = f"{found.free / 2**30:.1f} GiB are free"
    if found.free < LITTLE_ROOM:
        return Check.warning(
            name,
            f"{found.path}: {room}",
            "free some disk space: state that cannot be written is lost at a restart",
        )
    kept = "is shared" if shared else "is accessible only to its owner"
    return Check.ok(name, f"{found.path} {kept} and can be written; {room}")


def ledger(known: int) -> Check:
    """Judge a readable ledger of the right CA."""
    return Check.ok("ledger", f"readable, with {counted(known, 'proxy certificate')}")


def broken_ledger(why: str) -> Check:
    """Judge a ledger or a CA with which no server starts."""
    # The sentence has the remedy after the semicolon.
    said, _, do = why.partition("; ")
    return Check.failed("ledger", said, do or "see docs/operations.md for the remedy")


def readiness(found: Answer) -> Check:
    """Judge the server's readiness page."""
    name, text = "readiness", found.text.strip()
    # The first line is the answer; each further line is a remark that begins with "but: ".
    first, *remarks = text.splitlines() or [""]
    if not found.status:
        return Check.failed(name, text, "look at `port HTTP`, and at the server's log")
    if found.status != 200:
        return Check.failed(
            name, first, "wait if the server has just started; otherwise see its log for the reason"
        )
    if remarks:
        said = "; ".join(each.removeprefix("but: ") for each in remarks)
        return Check.warning(name, said, "correct this; see docs/operations.md")
    return Check.ok(name, "the server is ready, without warnings")


def source(found: Source) -> Check:
    """Judge one source of objects."""
    name = f"source {found.name}"
    if found.error:
        since = f" (since {found.since})" if found.since else ""
        do = "correct the error; until then the last objects of this source stay in force"
        return Check.failed(name, f"degraded: {found.error}{since}", do)
    if found.refused or found.stale:
        bad = f"{counted(found.refused, 'object')} refused, {found.stale} in force in an older form"
        return Check.failed(
            name, bad, "for the objects and the reasons: `/debug/policies` or `meshwright lint`"
        )
    if found.held:
        do = (
            "if the objects were deleted on purpose, wait: the deletion takes effect soon (see "
            "`meshwright sources`); otherwise restore them"
        )
        return Check.warning(
            name, f"deletion delayed, because all objects disappeared at once: {listed(found.held)}", do
        )
    read = f", read {found.age} ago" if found.age else ""
    return Check.ok(name, f"{counted(found.good, 'object')} in force{read}")


def problems(found: Sequence[ObjectProblem]) -> Check:
    """Judge the problems of objects, without rejections by proxies."""
    others = [each for each in found if each.code not in (REJECTED, LEFT_OUT)]
    do = "for the whole list: `meshwright lint` or `/debug/policies`"
    return judged("problems", others, do, "no problems found")


def rejections(proxies: Sequence[Proxy], found: Sequence[ObjectProblem]) -> Check:
    """Judge the resources rejected by proxies."""
    who = [f"{each.name} ({', '.join(each.rejects)})" for each in proxies if each.rejects]
    why = next((each.line for each in found if each.code == REJECTED), "")
    if not who and not why:
        return Check.ok("rejections", "no proxy rejects a resource")
    said = f"rejected by {listed(who) or 'a proxy that has disconnected'}" + (f": {why}" if why else "")
    do = "correct the named object; to send the resource again at once: `meshwright proxy retry NAME`"
    return Check.failed("rejections", said, do)


def withheld(found: Sequence[ObjectProblem], failures: Sequence[str]) -> Check:
    """Judge parts of policy out of force, and groups of proxies with outdated configuration."""
    left = [each for each in found if each.code == LEFT_OUT]
    if failures:
        said = f"{counted(len(failures), 'group')} of proxies cannot get new configuration: {failures[0]}"
        return Check.failed(
            "withheld",
            said,
            "correct the named object; until then these proxies keep their last configuration (see "
            "/debug/policies)",
        )
    do = "correct the named match, or remove it"
    return judged("withheld", left, do, "every part of policy is in force")


def connected(found: Sequence[Proxy]) -> Check:
    """Judge whether all expected proxies are connected."""
    by = {state: [each for each in found if each.state == state] for state in ("connected", "expected")}
    gone = [each for each in found if each.state == "disconnected"]
    counts = f"{len(by['connected'])} connected, {len(by['expected'])} expected, {len(gone)} disconnected"
    if gone:
        said = f"{counts}: {listed(_told(each) for each in gone)}"
        return Check.failed(
            "proxies",
            said,
            "for the reason, run `meshwright agent check` on the proxy's machine (for a Pod: "
            "`kubectl exec POD -c meshwright-sidecar -- ...`)",
        )
    if held := [each for each in found if each.held]:
        do = "create a Workload for the proxy, or issue its certificate for the name of the Workload"
        return Check.failed(
            "proxies", f"connected, but without configuration: {listed(map(_told, held))}", do
        )
    if by["expected"]:
        said = f"{counts}: {listed(_told(each) for each in by['expected'])}"
        do = "start the agent, or run `meshwright agent check` on the proxy's machine"
        return Check.warning("proxies", said, do)
    return Check.ok("proxies", counts if found else "no workload has a sidecar")


def in_step(found: Sequence[Proxy]) -> Check:
    """Judge whether connected proxies have their current configuration."""
    here = [each for each in found if each.state == "connected"]
    if behind := [each for each in here if each.waits > BEHIND]:
        said = listed(f"{each.name} for {length(each.waits)} ({each.why})" for each in behind)
        return Check.failed(
            "in step", f"behind: {said}", "see `meshwright proxy show NAME`, and the log of its Envoy"
        )
    return Check.ok(
        "in step", f"{len(here)} of {len(here)} connected proxies have acknowledged their configuration"
    )


def _told(proxy: Proxy) -> str:
    return f"{proxy.name} ({proxy.why})" if proxy.why else proxy.name


def event_loop(alive: Answer, found: Sequence[Moment], now: datetime) -> Check:
    """Judge the recent delays of the event loop."""
    name = "event loop"
    # The liveness page has its own thread, so it answers even while the event loop is blocked.
    if alive.status == 503:
        do = "see the server's log for the cause; restart the server if this state lasts"
        return Check.failed(name, alive.text.strip(), do)
    late = [each for each in found if now - each.at < LATELY and each.late >= LATE]
    if not late:
        return Check.ok(name, f"never blocked for {length(LATE)} or longer in the last {length(LATELY)}")
    most = max(late, key=lambda each: (each.late, each.at))
    doing = f", during {most.doing}" if most.doing else ""
    said = (
        f"blocked {counted(len(late), 'time')} in the last {length(LATELY)} (longest: "
        f"{most.late.total_seconds():.1f} s{doing})"
    )
    do = f"give the server more CPU; see `/debug/loop` for all moments, the longest at {stamp(most.at)}"
    return Check.warning(name, said, do)
