"""Which addresses this network namespace has, as the kernel shows it."""

from pathlib import Path
from typing import Final

# Of this very thread: it may stand in another namespace than the process.
_TABLE: Final = Path("/proc/thread-self/net/if_inet6")
_GLOBAL: Final = "00"
"""The scope of addresses that others reach; loopback's, and those of one link, have others."""


def knows_ipv6() -> bool:
    """Say whether the kernel has IPv6, switched off or not; started with `ipv6.disable=1` it has not."""
    return _TABLE.exists()


def has_ipv6() -> bool:
    """Say whether there is an address of IPv6 at which others reach this machine."""
    try:
        return any_global(_TABLE.read_text("ascii"))
    except OSError:  # the kernel has no IPv6, or there is no /proc
        return False


def any_global(table: str) -> bool:
    """Read the table: address, card, length, scope, flags, name of the card."""
    rows = (line.split() for line in table.splitlines())
    return any(len(row) == 6 and row[3] == _GLOBAL for row in rows)
