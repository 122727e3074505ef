"""Listening sockets: `[::]` means all addresses of both families, or of IPv4 on a machine without IPv6."""

import socket
from dataclasses import replace
from ipaddress import IPv6Address, ip_address
from typing import Final

from meshwright.mesh.host_port import HostPort

EVERYWHERE: Final = "::"
_EVERYWHERE_IPV4: Final = "0.0.0.0"  # noqa: S104 - written and compared
_BACKLOG: Final = 128


def listening(at: HostPort) -> socket.socket:
    """Return a listening socket. Raises OSError.

    `[::]` listens on all addresses, also in a kernel without IPv6.
    """
    if at.host == EVERYWHERE and not socket.has_dualstack_ipv6():
        at = replace(at, host=_EVERYWHERE_IPV4)
    family = socket.AF_INET6 if ":" in at.host else socket.AF_INET
    both = at.host == EVERYWHERE
    # Without `dualstack_ipv6` Python sets IPV6_V6ONLY, and `[::]` would refuse connections over IPv4.
    return socket.create_server((at.host, at.port), family=family, backlog=_BACKLOG, dualstack_ipv6=both)


def reached_from_here(host: str) -> str:
    """Return the host to reach a listener from the same machine, with IPv4 in any case.

    For example, `127.0.0.1` for `[::]`.
    """
    return "127.0.0.1" if host in (_EVERYWHERE_IPV4, EVERYWHERE) else host


def plain(host: str) -> str:
    """Return a peer's address, with an IPv4-mapped IPv6 address (of a dual-stack socket) as IPv4."""
    result = ip_address(host)
    # A dual-stack socket shows a client over IPv4 as `::ffff:10.0.0.1`.
    mapped = result.ipv4_mapped if isinstance(result, IPv6Address) else None
    return str(mapped or result)
