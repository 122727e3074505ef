"""Limit of open file descriptors, raised as far as the system allows."""

import resource
from typing import Final

import structlog

ENOUGH: Final = 4096
"""Number of descriptors below which a warning is logged.

Each proxy takes one, as does each connection during the handshake.
"""
_MOST: Final = 1024 * 1024
"""Linux's own limit (fs.nr_open). A higher hard limit, such as "unlimited", cannot be set."""

_log = structlog.get_logger("controller.process.descriptors")


def raise_limit() -> None:
    """Raise the soft limit to the hard limit; log a warning if the result is low."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
    # The default soft limit is often 1024, kept low for programs that use `select`.
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    for remark in remarks():
        _log.warning("file descriptor limit is low", detail=remark)


def remarks() -> tuple[str, ...]:
    """Return a remark for the readiness page if the limit is low."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= ENOUGH:
        return ()
    wrong = f"the limit of file descriptors is {soft}, at least {ENOUGH} are needed"
    return (f"{wrong}: raise it (ulimit -n), because proxies beyond the limit are refused",)
