"""How many file descriptors this process may have: as many as the system lets it."""

import resource
from typing import Final

import structlog

ENOUGH: Final = 4096
"""Each proxy takes one, and each connection in its handshake; fewer than this is said."""
_MOST: Final = 1024 * 1024
"""Linux' own bound (fs.nr_open); a hard limit above it, such as «unlimited», could not be taken."""

_log = structlog.get_logger("controller.descriptors")


def raised_limit() -> int:
    """Raise the soft limit to the hard one, and return what it is; say so if that is few."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        soft = most
    if soft != resource.RLIM_INFINITY and soft < ENOUGH:
        _log.warning(
            "few file descriptors",
            limit=soft,
            advice=f"raise the limit to {ENOUGH} at least (ulimit -n): proxies beyond it are turned away",
        )
    return soft
