"""Whether a pod's traffic is led to its proxy, seen by connecting: what needs no right, and no program.

Run as the proxy's user before the proxy runs. What that user sends to an address of its own pod is led to the
proxy's inbound port, as calls from elsewhere are: a connection to a port at which nobody listens is refused
without rules, and with them comes in where the proxy would listen. With TPROXY it comes to nobody, since only
privileged programs are given it. The rules for what is sent are set with those, or at once after them.
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
"""How long a connection within the pod may take."""
_AGAIN: Final = 0.25
_SOCKETS: Final = {Family.IPV4: socket.AF_INET, Family.IPV6: socket.AF_INET6}
_ELSEWHERE: Final = {Family.IPV4: "192.0.2.1", Family.IPV6: "2001:db8::1"}
"""Addresses of nobody (RFC 5737, RFC 3849): the way there begins at the pod's own."""


def until_led(wanted: Interception, seconds: float, clock: Callable[[], float] = time.monotonic) -> str:
    """Wait until connections are led, so many seconds at most; return why they are not, empty if they are."""
    deadline = clock() + seconds
    while (words := not_led(wanted)) and clock() < deadline:
        time.sleep(_AGAIN)
    return words


def not_led(wanted: Interception) -> str:
    """Say which connection is not led as wanted; empty if all are.

    A family of which the pod has no address is left out. Raises InterceptionError where nothing can be seen:
    there is no address, or the proxy's port is somebody's already.
    """
    if not wanted.inbound:
        raise InterceptionError("inbound traffic is not to be captured: there is nothing that can be seen")
    own = {family: address for family in sorted(wanted.families) if (address := _own(family))}
    if not own:
        raise InterceptionError("there is no address here but loopback: nothing can be led")
    for family, address in own.items():
        if not _is_led(wanted, family, address):
            return f"a connection to {address} is not led to port {wanted.inbound_to}"
    return ""


def captured_port(wanted: Interception) -> int:
    """Return the highest port to which connections are captured; raise InterceptionError without any."""
    included = wanted.inbound_included or (PortRange(1, 65535),)
    for port in range(65535, 0, -1):
        if _is_in(port, included) and not _is_in(port, wanted.inbound_excluded) and port != wanted.inbound_to:
            return port
    raise InterceptionError("every inbound port is excluded: there is nothing that can be seen")


def _is_in(port: int, ranges: tuple[PortRange, ...]) -> bool:
    return any(each.first <= port <= each.last for each in ranges)


def _own(family: Family) -> str:
    """Return an address of our own; empty without one, or without a way from it."""
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
        except OSError:  # refused: it came to where nobody listens
            return False
        return bool(select.select([proxy], [], [], _SECONDS)[0])


@contextlib.contextmanager
def _proxy(wanted: Interception, family: Family) -> Iterator[socket.socket]:
    """Listen where the proxy will."""
    with socket.socket(_SOCKETS[family]) as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family is Family.IPV6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            made.bind(("", wanted.inbound_to))
        except OSError as error:
            raise InterceptionError(f"port {wanted.inbound_to}, which is the proxy's: {error}") from error
        made.listen(1)
        yield made
