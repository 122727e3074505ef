"""Whose the ports are to which traffic is led: they must be the user's whose own traffic is left alone.

A proxy that runs as another user would be led to itself by what it sends, for ever. A socket has the user
that made it, whoever holds it by now, which is what netfilter goes by, too.
"""

import contextlib
import os
import pwd
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent.interception.settings import Interception

# Of this very thread: it may stand in another namespace than the process.
_TABLES: Final = (Path("/proc/thread-self/net/tcp"), Path("/proc/thread-self/net/tcp6"))
_LISTENS: Final = "0A"


@dataclass(frozen=True, slots=True, order=True)
class Owner:
    """Who listens at a port: the user of the socket, and the socket's number."""

    port: int
    uid: int
    number: int


def owners(table: str) -> tuple[Owner, ...]:
    """Read who listens from a table as the kernel shows it (`/proc/net/tcp`)."""
    rows = (line.split() for line in table.splitlines()[1:])
    return tuple(
        Owner(int(row[1].rpartition(":")[2], 16), int(row[7]), int(row[9]))
        for row in rows
        if len(row) > 9 and row[3] == _LISTENS
    )


def led_to(wanted: Interception) -> dict[int, str]:
    """Return the ports to which traffic is to be led, and which traffic."""
    inbound = {wanted.inbound_to: "inbound"} if wanted.inbound else {}
    return inbound | ({wanted.outbound_port: "outbound"} if wanted.outbound else {})


def strangers(found: Iterable[Owner], wanted: Interception) -> tuple[Owner, ...]:
    """Return who listens there and is another user than the one whose own traffic is left alone."""
    ports = led_to(wanted)
    return tuple(sorted({each for each in found if each.port in ports and each.uid != wanted.uid}))


def complaint(stranger: Owner, wanted: Interception, program: str = "") -> str:
    """Say what would come of it, and what to do; `program` is what is known of who has the socket."""
    direction, user = led_to(wanted)[stranger.port], named(stranger.uid)
    who = f"{program}, which runs" if program else "a program"
    return (
        f"port {stranger.port}, to which {direction} traffic is led, is that of {who} as {user}, and what "
        f"is left alone is what {named(wanted.uid)} sends: the proxy would be led to itself for ever; "
        f"run the agent as {named(wanted.uid)}, or say --uid {stranger.uid} if it has a user of its own"
    )


def complaints(wanted: Interception) -> tuple[str, ...]:
    """Look who has the ports in this thread's network namespace, and say what is wrong with that."""
    found = [each for table in _TABLES for each in owners(_text(table))]
    return tuple(complaint(each, wanted, _program(each.number)) for each in strangers(found, wanted))


def _text(path: Path) -> str:
    try:
        return path.read_text("ascii")
    except OSError:  # there is no such family, or no /proc
        return ""


def named(uid: int) -> str:
    """Return how a user is said: by name, where there is one, and number."""
    try:
        return f"user {pwd.getpwuid(uid).pw_name} ({uid})"
    except KeyError:
        return f"user {uid}"


def _program(number: int) -> str:
    """Return the process that has a socket, as far as it can be seen from here."""
    return next((f"{name} (pid {pid})" for pid, name in _holders(f"socket:[{number}]")), "")


def _holders(link: str) -> Iterator[tuple[int, str]]:
    for folder in sorted(Path("/proc").glob("[0-9]*"), key=lambda each: int(each.name)):
        with contextlib.suppress(OSError):  # it ended meanwhile, or is not ours to look at
            if any(os.readlink(each) == link for each in (folder / "fd").iterdir()):  # noqa: PTH115
                yield int(folder.name), (folder / "comm").read_text().strip()
