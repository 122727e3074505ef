"""IPv6 addresses of this network namespace, from the kernel's table."""

from pathlib import Path
from typing import Final

# Of this thread, because it may be in another network namespace than the process.
_TABLE: Final = Path("/proc/thread-self/net/if_inet6")
_GLOBAL: Final = "00"
"""Scope of global addresses; loopback and link-local addresses have other scopes."""


def knows_ipv6() -> bool:
    """Return whether the kernel has IPv6, enabled or not (missing with `ipv6.disable=1`)."""
    return _TABLE.exists()


def has_ipv6() -> bool:
    """Return whether this network namespace has a global IPv6 address."""
    try:
        return any_global(_TABLE.read_text("ascii"))
    except OSError:  # the kernel has no IPv6, or /proc is missing
        return False


def any_global(table: str) -> bool:
    """Return whether the kernel's table of IPv6 addresses has a global one.

    The columns are address, interface index, prefix length, scope, flags, and interface name.
    """
    rows = (line.split() for line in table.splitlines())
    return any(len(row) == 6 and row[3] == _GLOBAL for row in rows)
