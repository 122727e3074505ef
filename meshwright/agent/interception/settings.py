"""Settings of interception, with their validation. Pure."""

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from typing import Final

from meshwright.agent.errors import AgentError
from meshwright.agent.interception.ports import PortRange
from meshwright.mesh.names import INTERFACE_RULE, InterfaceName, is_interface
from meshwright.mesh.workload import Capture
from meshwright.sidecars.layout import INBOUND_PORT, OUTBOUND_PORT, PROXY_UID, STATUS_PORT, TPROXY_PORT

MARK: Final = 1337
ROUTE_TABLE: Final = 133
_RESERVED_TABLES: Final = (0, 253, 254, 255)

Network = IPv4Network | IPv6Network


class InterceptionError(AgentError, ValueError):
    """Invalid or contradictory settings of interception; the message has the setting and the reason."""


class Family(enum.IntEnum):
    """The address families, by their IP version."""

    IPV4 = 4
    IPV6 = 6

    @property
    def loopback(self) -> str:
        """Return the loopback range of the family, for example `127.0.0.0/8`."""
        return "127.0.0.0/8" if self is Family.IPV4 else "::1/128"

    @property
    def unspecified(self) -> str:
        """Return the wildcard address of the family."""
        return "0.0.0.0" if self is Family.IPV4 else "::"  # noqa: S104 - written, not listened at


@dataclass(frozen=True, slots=True)
class Interception:
    """The traffic to capture. A list of inclusions restricts it (None: all), and exclusions take precedence.

    Outbound ports and ranges must both match: captured is traffic to an included port *and* an included
    range. Traffic over an excluded interface is never captured. `uid` is the proxy's user, whose traffic is
    exempt, except for calls to the proxy's own workload. An `inbound_port` of None means the sidecar's port
    for this `capture`. Raises InterceptionError for invalid settings.
    """

    uid: int = PROXY_UID
    capture: Capture = Capture.REDIRECT
    inbound: bool = True
    outbound: bool = True
    families: frozenset[Family] = frozenset({Family.IPV4})
    inbound_port: int | None = None
    outbound_port: int = OUTBOUND_PORT
    inbound_included: tuple[PortRange, ...] | None = None
    inbound_excluded: tuple[PortRange, ...] = (PortRange(STATUS_PORT, STATUS_PORT),)
    outbound_included: tuple[PortRange, ...] | None = None
    outbound_excluded: tuple[PortRange, ...] = ()
    ranges_included: tuple[Network, ...] | None = None
    ranges_excluded: tuple[Network, ...] = ()
    interfaces_excluded: tuple[InterfaceName, ...] = ()
    ipv6_by_address: bool = False
    mark: int = MARK
    route_table: int = ROUTE_TABLE

    def __post_init__(self) -> None:
        for problem in _problems(self):
            raise InterceptionError(problem)

    @property
    def inbound_to(self) -> int:
        """Return the proxy's port for inbound connections."""
        if self.inbound_port is not None:
            return self.inbound_port
        return TPROXY_PORT if self.capture is Capture.TPROXY else INBOUND_PORT

    @property
    def own_mark(self) -> int:
        """Return the mark of the proxy's calls to its own workload (TPROXY)."""
        return self.mark + 1


def _problems(wanted: Interception) -> Iterator[str]:
    """Yield one sentence for each fault of the settings."""
    if not (wanted.inbound or wanted.outbound):
        yield ("neither inbound nor outbound traffic is captured; to remove the interception, use --clean")
    if not wanted.families:
        yield "neither IPv4 nor IPv6 is captured; to remove the interception, use --clean"
    if not 0 <= wanted.uid < 2**32 - 1:
        yield f"uid is {wanted.uid}: must be from 0 to {2**32 - 2}"
    for name, port in (("inbound", wanted.inbound_to), ("outbound", wanted.outbound_port)):
        if not 1 <= port <= 65535:
            yield f"the {name} port is {port}: must be from 1 to 65535"
    if wanted.inbound_to == wanted.outbound_port:
        yield (
            f"port {wanted.inbound_to} is set for both directions; use two ports, because the "
            "proxy cannot distinguish the directions otherwise"
        )
    yield from _unused_lists(wanted)
    yield from _foreign_ranges(wanted)
    for name in wanted.interfaces_excluded:
        if not is_interface(name):
            yield f"the excluded interface is {name!r}: {INTERFACE_RULE}"
    if wanted.capture is Capture.TPROXY:
        yield from _bad_marks(wanted)


def _unused_lists(wanted: Interception) -> Iterator[str]:
    included = {
        "included inbound ports": wanted.inbound_included,
        "included outbound ports": wanted.outbound_included,
        "included outbound ranges": wanted.ranges_included,
    }
    for name, given in included.items():
        if given == ():
            yield (
                f"the list of {name} is empty; leave the list out to capture all, or turn the direction off"
            )
        direction = wanted.inbound if "inbound" in name else wanted.outbound
        if given is not None and not direction:
            yield f"{name} are given, but this direction is not captured"
    if not wanted.outbound and (wanted.outbound_excluded or wanted.ranges_excluded):
        yield "outbound exclusions are given, but outbound traffic is not captured"


def _foreign_ranges(wanted: Interception) -> Iterator[str]:
    for network in (*(wanted.ranges_included or ()), *wanted.ranges_excluded):
        if network.version not in wanted.families:
            yield f"range {network} is IPv{network.version}, which is not captured"
    for network in wanted.ranges_excluded:
        if network.prefixlen == 0:
            yield (
                f"range {network} excludes all addresses; turn the outbound capture or this "
                "address family off instead"
            )


def _bad_marks(wanted: Interception) -> Iterator[str]:
    if not wanted.inbound:
        yield "TPROXY is only for inbound traffic, which is not captured"
    if not 1 <= wanted.mark < 2**32 - 1:
        yield f"the mark is {wanted.mark}: must be from 1 to {2**32 - 2}"
    if wanted.route_table in _RESERVED_TABLES or not 0 < wanted.route_table < 2**32:
        yield (
            f"the route table is {wanted.route_table}: must be from 1 to 4294967295, and not "
            "a reserved table (253, 254 or 255)"
        )
