"""Test by connecting whether a pod's traffic is redirected to the proxy, without privileges or programs.

The test runs as the proxy's user before the proxy starts. A connection of this user to an address of its own
pod is redirected to the proxy's inbound port, like calls from elsewhere. The target is a port without a
listener: without rules the connection is refused, and with rules the connection arrives where the proxy will
listen. With TPROXY the connection times out, because only privileged programs can receive it. Outbound rules
are set together with the inbound ones, or directly after them.
"""

import contextlib
import select
import socket
import time
from collections.abc import Callable, Iterator
from typing import Final

from meshwright.agent.interception.ports import PortRange
from meshwright.agent.interception.settings import Family, Interception, InterceptionError
from meshwright.mesh.workload import Capture

_SECONDS: Final = 2.0
"""Seconds that a connection within the pod may take."""
_AGAIN: Final = 0.25
_SOCKETS: Final = {Family.IPV4: socket.AF_INET, Family.IPV6: socket.AF_INET6}
_ELSEWHERE: Final = {Family.IPV4: "192.0.2.1", Family.IPV6: "2001:db8::1"}
"""Reserved addresses (RFC 5737, RFC 3849); the route to them reveals the pod's own address."""


def until_led(wanted: Interception, seconds: float, clock: Callable[[], float] = time.monotonic) -> str:
    """Wait until connections are redirected, for at most this many seconds.

    Return the failure, empty on success.
    """
    deadline = clock() + seconds
    while (words := not_led(wanted)) and clock() < deadline:
        time.sleep(_AGAIN)
    return words


def not_led(wanted: Interception) -> str:
    """Return a sentence about a connection without redirection; empty if all are redirected.

    A family without an address in the pod is skipped. Raises InterceptionError if a test is impossible,
    because of a missing address, or because the proxy's port is in use.
    """
    if not wanted.inbound:
        raise InterceptionError("inbound traffic is not captured, so a test is not possible")
    own = {family: address for family in sorted(wanted.families) if (address := _own(family))}
    if not own:
        raise InterceptionError(
            "this machine has only loopback addresses, so the interception cannot be tested"
        )
    for family, address in own.items():
        if not _is_led(wanted, family, address):
            return f"a test connection to {address} was not redirected to port {wanted.inbound_to}"
    return ""


def captured_port(wanted: Interception) -> int:
    """Return the highest captured inbound port; raise InterceptionError if all ports are exempt."""
    included = wanted.inbound_included or (PortRange(1, 65535),)
    for port in range(65535, 0, -1):
        if _is_in(port, included) and not _is_in(port, wanted.inbound_excluded) and port != wanted.inbound_to:
            return port
    raise InterceptionError("every inbound port is excluded, so a test is not possible")


def _is_in(port: int, ranges: tuple[PortRange, ...]) -> bool:
    return any(port_range.first <= port <= port_range.last for port_range in ranges)


def _own(family: Family) -> str:
    """Return this machine's address of a family; empty without an address or a route."""
    with contextlib.suppress(OSError), socket.socket(_SOCKETS[family], socket.SOCK_DGRAM) as asked:
        asked.connect((_ELSEWHERE[family], 9))  # nothing is sent
        return str(asked.getsockname()[0])
    return ""


def _is_led(wanted: Interception, family: Family, address: str) -> bool:
    with _proxy(wanted, family) as proxy, socket.socket(_SOCKETS[family]) as caller:
        caller.settimeout(_SECONDS)
        try:
            caller.connect((address, captured_port(wanted)))
        except TimeoutError:
            return wanted.capture is Capture.TPROXY
        except OSError:  # refused: it was not redirected
            return False
        return bool(select.select([proxy], [], [], _SECONDS)[0])


@contextlib.contextmanager
def _proxy(wanted: Interception, family: Family) -> Iterator[socket.socket]:
    """Listen on the proxy's inbound port, in place of the proxy."""
    with socket.socket(_SOCKETS[family]) as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family is Family.IPV6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            made.bind(("", wanted.inbound_to))
        except OSError as error:
            raise InterceptionError(
                f"cannot listen on port {wanted.inbound_to}, the inbound port of the proxy: {error}"
            ) from error
        made.listen(1)
        yield made
