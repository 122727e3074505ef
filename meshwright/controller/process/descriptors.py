"""How many file descriptors this process may have: as many as the system lets it."""

import resource
from typing import Final

import structlog

ENOUGH: Final = 4096
"""Each proxy takes one, and each connection in its handshake; fewer than this is said."""
_MOST: Final = 1024 * 1024
"""Linux' own bound (fs.nr_open); a hard limit above it, such as «unlimited», could not be taken."""

_log = structlog.get_logger("controller.process.descriptors")


def raise_limit() -> None:
    """Raise the soft limit to the hard one; say so if that is few."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    for remark in remarks():
        _log.warning("few file descriptors", detail=remark)


def remarks() -> tuple[str, ...]:
    """Return what is wrong with the limit there is, for readiness."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= ENOUGH:
        return ()
    return (f"{soft} file descriptors, {ENOUGH} are wanted (ulimit -n): proxies beyond them are turned away",)
