"""Precedence of objects with the same claim: health, then age, then name.

Age is `metadata.creationTimestamp` as written by Kubernetes; objects without one, as most in files, come
last.
"""

from typing import Final

from meshwright.mesh.workload import Health

BEST_FIRST: Final = (Health.READY, Health.DRAINING, Health.UNREADY)


def health_rank(health: Health) -> int:
    """Return the rank of a health, best first."""
    return BEST_FIRST.index(health)


def age(created: str) -> tuple[bool, str]:
    """Return a sort key for `metadata.creationTimestamp`: oldest first, missing ones last."""
    # Timestamps are RFC 3339 in UTC with whole seconds, so their texts sort by time.
    return (not created, created)
