"""The order in which objects that claim the same have it: health, then age, then name.

Age is `metadata.creationTimestamp` as Kubernetes writes it; objects without one, as most in files, come last.
"""

from typing import Final

from meshwright.mesh.workload import Health

BEST_FIRST: Final = (Health.READY, Health.DRAINING, Health.UNREADY)


def health_rank(health: Health) -> int:
    """Return the place of a health among all, the best first."""
    return BEST_FIRST.index(health)


def age(created: str) -> tuple[bool, str]:
    """Return a sorting key for `metadata.creationTimestamp`: the oldest first, none last."""
    return (not created, created)
