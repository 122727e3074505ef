"""Check of the target ports of redirection: they must belong to the exempt user.

A proxy that runs as another user would be redirected to itself for ever by its own traffic. A socket keeps
the user of its creation, whichever process holds the socket, and netfilter uses this user too.
"""

import pwd
from collections.abc import Iterable

from meshwright.agent.interception.settings import Interception
from meshwright.agent.sockets import Owner, holders, listening


def led_to(wanted: Interception) -> dict[int, str]:
    """Return the proxy's ports to which traffic is redirected, each with the direction."""
    inbound = {wanted.inbound_to: "inbound"} if wanted.inbound else {}
    return inbound | ({wanted.outbound_port: "outbound"} if wanted.outbound else {})


def strangers(owners: Iterable[Owner], wanted: Interception) -> tuple[Owner, ...]:
    """Return the sockets on target ports of the redirection that another than the exempt user owns."""
    ports = led_to(wanted)
    return tuple(sorted({owner for owner in owners if owner.port in ports and owner.uid != wanted.uid}))


def complaint(stranger: Owner, direction: str, uid: int, program: str = "") -> str:
    """Return the sentence for redirection to a foreign socket, with the remedy.

    Traffic of user `uid` is exempt; `program` describes the process with the socket, if known.
    """
    who = f"{program}, running" if program else "a program"
    return (
        f"port {stranger.port}, to which {direction} traffic is redirected, belongs to "
        f"{who} as {named(stranger.uid)}, but the rules exempt only the traffic of "
        f"{named(uid)}, so the traffic of the proxy would be redirected to the proxy "
        f"itself without end; run the agent as {named(uid)}, or give --uid {stranger.uid} "
        "if the proxy has its own user"
    )


def complaints(wanted: Interception) -> tuple[str, ...]:
    """Check which users own the target ports of the redirection, and return a sentence for each fault.

    The ports are those of this thread's network namespace.
    """
    ports = led_to(wanted)
    return tuple(
        complaint(stranger, ports[stranger.port], wanted.uid, program(stranger.number))
        for stranger in strangers(listening(), wanted)
    )


def program(number: int) -> str:
    """Return the process with a socket (inode number), for example `envoy (pid 17)`, or "" if not visible."""
    return next(map(str, holders(number)), "")


def named(uid: int) -> str:
    """Return a user as text, for example `user envoy (1500)`."""
    try:
        return f"user {pwd.getpwuid(uid).pw_name} ({uid})"
    except KeyError:
        return f"user {uid}"
