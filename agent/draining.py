"""How long a proxy that is to end may still serve. Pure."""

import re
from dataclasses import dataclass
from typing import Final

CONNECTIONS_PATH: Final = "/stats?filter=downstream_cx_active$"
_NOT_TRAFFIC: Final = ("http.admin.", "listener.admin.")


@dataclass(frozen=True, slots=True)
class DrainSettings:
    """Serve at least `least_seconds`, then until no connection is left, at most `most_seconds`.

    The least is for those who do not know yet that we go: balancers, and proxies with old endpoints.
    """

    least_seconds: float = 5.0
    most_seconds: float = 45.0

    def __post_init__(self) -> None:
        if not 0 <= self.least_seconds <= self.most_seconds:
            raise ValueError(
                f"to drain at least {self.least_seconds} s and at most {self.most_seconds} s is impossible"
            )


def is_over(settings: DrainSettings, elapsed: float, connections: int | None) -> bool:
    """Say whether to end now; `connections` is None where Envoy does not answer, which is no reason to."""
    if elapsed < settings.least_seconds:
        return False
    return connections == 0 or elapsed >= settings.most_seconds


def connections(stats: str) -> int:
    """Return how many connections listeners hold, the admin interface's own left out."""
    found = re.findall(r"^(listener\..+?\.downstream_cx_active): (\d+)$", stats, re.MULTILINE)
    # With a worker's name in it, a counter is part of another one.
    return sum(
        int(value) for name, value in found if not name.startswith(_NOT_TRAFFIC) and ".worker_" not in name
    )
