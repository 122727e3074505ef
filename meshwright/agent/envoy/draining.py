"""Decision when the drain of an ending proxy is over, by time and open connections. Pure."""

import re
from dataclasses import dataclass
from typing import Final

CONNECTIONS_PATH: Final = "/stats?filter=downstream_(cx|rq)_active$"
_NOT_TRAFFIC: Final = ("admin.", "async-client.")
# A counter with a worker's name is included in another counter.
_COUNTER: Final = re.compile(r"^(listener|http)\.(.+?\.)downstream_(cx|rq)_active: (\d+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class DrainSettings:
    """Serve at least `least_seconds`, then until all connections are unused, for at most `most_seconds`.

    The minimum is for callers that do not know yet about the end, for example load balancers, and proxies
    with old endpoints.
    """

    least_seconds: float = 5.0
    most_seconds: float = 45.0

    def __post_init__(self) -> None:
        if not 0 <= self.least_seconds <= self.most_seconds:
            raise ValueError(
                f"the minimum drain time ({self.least_seconds} s) must not be longer than "
                f"the maximum ({self.most_seconds} s)"
            )


def is_over(settings: DrainSettings, elapsed: float, connections: int | None) -> bool:
    """Return whether to end now.

    `connections` is None if Envoy does not answer, which does not end the drain.
    """
    if elapsed < settings.least_seconds:
        return False
    return connections == 0 or elapsed >= settings.most_seconds


def in_use(stats: str) -> int:
    """Return the number of connections in use, except connections of the admin interface.

    An HTTP connection counts by open requests. An idle connection, kept by a peer for later, would otherwise
    delay every end, because Envoy closes such a connection only with the next answer.
    """
    result = [
        (kind, counter, int(value))
        for kind, name, counter, value in _COUNTER.findall(stats)
        if not name.startswith(_NOT_TRAFFIC) and "worker_" not in name
    ]
    connections = sum(value for kind, counter, value in result if (kind, counter) == ("listener", "cx"))
    of_http = sum(value for kind, counter, value in result if (kind, counter) == ("http", "cx"))
    requests = sum(value for kind, counter, value in result if (kind, counter) == ("http", "rq"))
    return max(0, connections - of_http) + requests
