"""How long a proxy that is to end may still serve. Pure."""

import re
from dataclasses import dataclass
from typing import Final

CONNECTIONS_PATH: Final = "/stats?filter=downstream_(cx|rq)_active$"
_NOT_TRAFFIC: Final = ("admin.", "async-client.")
# With a worker's name in it, a counter is part of another one.
_COUNTER: Final = re.compile(r"^(listener|http)\.(.+?\.)downstream_(cx|rq)_active: (\d+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class DrainSettings:
    """Serve at least `least_seconds`, then until no connection is in use, at most `most_seconds`.

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


def in_use(stats: str) -> int:
    """Return how many connections are in use, the admin interface's own left out.

    An HTTP connection counts by its requests: one that a peer keeps for later is in nobody's way, and would
    else hold up every end, for Envoy closes it with its next answer only.
    """
    found = [
        (kind, counter, int(value))
        for kind, name, counter, value in _COUNTER.findall(stats)
        if not name.startswith(_NOT_TRAFFIC) and "worker_" not in name
    ]
    connections = sum(value for kind, counter, value in found if (kind, counter) == ("listener", "cx"))
    of_http = sum(value for kind, counter, value in found if (kind, counter) == ("http", "cx"))
    requests = sum(value for kind, counter, value in found if (kind, counter) == ("http", "rq"))
    return max(0, connections - of_http) + requests
