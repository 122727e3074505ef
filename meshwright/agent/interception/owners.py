"""Whose the ports are to which traffic is led: they must be the user's whose own traffic is left alone.

A proxy that runs as another user would be led to itself by what it sends, for ever. A socket has the user
that made it, whoever holds it by now, which is what netfilter goes by, too.
"""

import pwd
from collections.abc import Iterable

from meshwright.agent.interception.settings import Interception
from meshwright.agent.sockets import Owner, holders, listening


def led_to(wanted: Interception) -> dict[int, str]:
    """Return the ports to which traffic is to be led, and which traffic."""
    inbound = {wanted.inbound_to: "inbound"} if wanted.inbound else {}
    return inbound | ({wanted.outbound_port: "outbound"} if wanted.outbound else {})


def strangers(found: Iterable[Owner], wanted: Interception) -> tuple[Owner, ...]:
    """Return who listens there and is another user than the one whose own traffic is left alone."""
    ports = led_to(wanted)
    return tuple(sorted({each for each in found if each.port in ports and each.uid != wanted.uid}))


def complaint(stranger: Owner, direction: str, uid: int, program: str = "") -> str:
    """Say what comes of traffic of that direction being led there, and what to do.

    What the user `uid` sends is left alone; `program` is what is known of who has the socket.
    """
    who = f"{program}, which runs" if program else "a program"
    return (
        f"port {stranger.port}, to which {direction} traffic is led, is that of {who} as "
        f"{named(stranger.uid)}, and what is left alone is what {named(uid)} sends: the proxy would be led "
        f"to itself for ever; run the agent as {named(uid)}, or say --uid {stranger.uid} if it has a user of "
        "its own"
    )


def complaints(wanted: Interception) -> tuple[str, ...]:
    """Look who has the ports in this thread's network namespace, and say what is wrong with that."""
    ports = led_to(wanted)
    return tuple(
        complaint(each, ports[each.port], wanted.uid, program(each.number))
        for each in strangers(listening(), wanted)
    )


def program(number: int) -> str:
    """Return the process that has a socket, as far as it can be seen from here."""
    return next(map(str, holders(number)), "")


def named(uid: int) -> str:
    """Return how a user is said: by name, where there is one, and number."""
    try:
        return f"user {pwd.getpwuid(uid).pw_name} ({uid})"
    except KeyError:
        return f"user {uid}"
