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
        do = "name the right one with --state, or start `meshwright serve`, which makes it"
        return Check.failed(name, f"{found.path} is not there, or is no directory", do)
    if found.exposed and not shared:
        first, *more = found.exposed
        # Each exposure ends in the command that corrects the mode.
        said, _, do = first.rpartition(": ")
        others = f" (and so of {len(more)} more)" if more else ""
        return Check.failed(name, f"{said}{others}", f"{do}, or set shared_state if that is meant")
    if found.unwritable:
        return Check.failed(name, found.unwritable, "make room, or mend the file system or its owner")
    room = f"{found.free / 2**30:.1f} GiB are free"
    if found.free < LITTLE_ROOM:
        return Check.warning(
            name, f"{found.path}: {room}", "make room: what cannot be written is lost at a restart"
        )
    kept = "is shared" if shared else "is its owner's alone"
    return Check.ok(name, f"{found.path} {kept}, and can be written; {room}")


def ledger(known: int) -> Check:
    """Judge a readable ledger of the right CA."""
    return Check.ok("ledger", f"it can be read, and has {counted(known, 'proxy certificate')}")


def broken_ledger(why: str) -> Check:
    """Judge a ledger or a CA with which no server starts."""
    # The sentence has the remedy after the semicolon.
    said, _, do = why.partition("; ")
    return Check.failed("ledger", said, do or "docs/operations.md says what to do about each")


def readiness(found: Answer) -> Check:
    """Judge the server's readiness page."""
    name, text = "readiness", found.text.strip()
    # The first line is the answer; each further line is a remark that begins with "but: ".
    first, *remarks = text.splitlines() or [""]
    if not found.status:
        return Check.failed(name, text, "look at `port HTTP`, and at the server's log")
    if found.status != 200:
        return Check.failed(name, first, "wait if it has just started; else its log says what keeps it")
    if remarks:
        said = "; ".join(each.removeprefix("but: ") for each in remarks)
        return Check.warning(name, said, "mend that; docs/operations.md has more")
    return Check.ok(name, "it is ready, and has nothing to remark")


def source(found: Source) -> Check:
    """Judge one source of objects."""
    name = f"source {found.name}"
    if found.error:
        since = f" (since {found.since})" if found.since else ""
        do = "mend that; what it said before stays in force meanwhile"
        return Check.failed(name, f"degraded: {found.error}{since}", do)
    if found.refused or found.stale:
        bad = f"{counted(found.refused, 'object')} refused, {found.stale} in force in an older form"
        return Check.failed(name, bad, "`/debug/policies` says which, and why; so does `meshwright lint`")
    if found.held:
        do = "if they are to go, nothing is to be done: that is believed soon; `meshwright sources`"
        return Check.warning(name, f"held back, as they went all at once: {listed(found.held)}", do)
    read = f", read {found.age} ago" if found.age else ""
    return Check.ok(name, f"{counted(found.good, 'object')} in force{read}")


def problems(found: Sequence[ObjectProblem]) -> Check:
    """Judge the problems of objects, without rejections by proxies."""
    others = [each for each in found if each.code not in (REJECTED, LEFT_OUT)]
    do = "`meshwright lint` and `/debug/policies` have them all"
    return judged("problems", others, do, "nothing is wrong with the objects, or between them")


def rejections(proxies: Sequence[Proxy], found: Sequence[ObjectProblem]) -> Check:
    """Judge the resources rejected by proxies."""
    who = [f"{each.name} ({', '.join(each.rejects)})" for each in proxies if each.rejects]
    why = next((each.line for each in found if each.code == REJECTED), "")
    if not who and not why:
        return Check.ok("rejections", "no proxy rejects anything")
    said = f"rejected by {listed(who) or 'a proxy that is gone'}" + (f": {why}" if why else "")
    do = "mend the object that is named; `meshwright proxy retry NAME` offers it again at once"
    return Check.failed("rejections", said, do)


def withheld(found: Sequence[ObjectProblem], failures: Sequence[str]) -> Check:
    """Judge parts of policy out of force, and groups of proxies with outdated configuration."""
    left = [each for each in found if each.code == LEFT_OUT]
    if failures:
        said = f"{counted(len(failures), 'group')} of proxies cannot be configured anew: {failures[0]}"
        return Check.failed("withheld", said, "it keeps what it had: mend what is named; /debug/policies")
    do = "mend the match that is named, or take it out"
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
            "where it runs, `meshwright agent check` says why (of a Pod: `kubectl exec POD -c "
            "meshwright-sidecar -- ...`)",
        )
    if held := [each for each in found if each.held]:
        do = "declare its Workload, or issue its certificate for the name that the Workload has"
        return Check.failed("proxies", f"connected, and served nothing: {listed(map(_told, held))}", do)
    if by["expected"]:
        said = f"{counts}: {listed(_told(each) for each in by['expected'])}"
        do = "start its agent, or look there: `meshwright agent check`"
        return Check.warning("proxies", said, do)
    return Check.ok("proxies", counts if found else "no workload has a sidecar")


def in_step(found: Sequence[Proxy]) -> Check:
    """Judge whether connected proxies have their current configuration."""
    here = [each for each in found if each.state == "connected"]
    if behind := [each for each in here if each.waits > BEHIND]:
        said = listed(f"{each.name} for {length(each.waits)} ({each.why})" for each in behind)
        return Check.failed("in step", f"behind: {said}", "`meshwright proxy show NAME`, and its Envoy's log")
    return Check.ok("in step", f"{len(here)} of {len(here)} connected have what they are served")


def _told(proxy: Proxy) -> str:
    return f"{proxy.name} ({proxy.why})" if proxy.why else proxy.name


def event_loop(alive: Answer, found: Sequence[Moment], now: datetime) -> Check:
    """Judge the recent delays of the event loop."""
    name = "event loop"
    # The liveness page has its own thread, so it answers even while the event loop is blocked.
    if alive.status == 503:
        do = "look at its log for what it is at; a process that stays so is to be restarted"
        return Check.failed(name, alive.text.strip(), do)
    late = [each for each in found if now - each.at < LATELY and each.late >= LATE]
    if not late:
        return Check.ok(name, f"never held for {length(LATE)} in the last {length(LATELY)}")
    most = max(late, key=lambda each: (each.late, each.at))
    doing = f", at {most.doing}" if most.doing else ""
    said = f"held {counted(len(late), 'time')} lately, for {most.late.total_seconds():.1f} s{doing}"
    do = f"`/debug/loop` has all moments, the longest at {stamp(most.at)}: give it more of a processor"
    return Check.warning(name, said, do)
