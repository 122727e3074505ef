"""Rate limits of the enrolment ports by address, token and proxy.

Pure decisions with the time as an argument.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from xds.connections.table import Bucket

KEPT: Final = 10_000
"""Maximum number of remembered clients; beyond it the one with the oldest request is forgotten."""


@dataclass(frozen=True, slots=True)
class Pace:
    """A rate limit: `at_once` requests in a burst, refilled at `per_second`."""

    at_once: float
    per_second: float


@dataclass(frozen=True, slots=True)
class EnrolmentLimits:
    """Limits of both ports, in seconds, bytes and numbers.

    `by_address` counts failed join requests. `under_way` is the maximum number of calls in progress, over all
    clients. `call_seconds` is the maximum time until a call's request is complete. `log_lines` limits log
    lines about refusals.
    """

    request_bytes: int = 64 * 1024
    call_seconds: float = 20.0
    under_way: int = 64
    connections: int = 2000
    idle_connections: int = 500
    by_address: Pace = Pace(64, 4.0)
    by_token: Pace = Pace(64, 4.0)
    by_proxy: Pace = Pace(10, 1 / 60)
    trust_by_proxy: Pace = Pace(20, 1.0)
    ejects_by_proxy: Pace = Pace(20, 1.0)
    reports_by_proxy: Pace = Pace(10, 0.5)
    log_lines: Pace = Pace(20, 1 / 6)


class LimitExhausted(Exception):
    """Error for a client with too many requests; `limit` names the limit, for example `address 10.0.0.1`."""

    def __init__(self, limit: str) -> None:
        super().__init__(limit)
        self.limit = limit


class Allowances:
    """The remaining allowance of each client under one rate limit."""

    def __init__(self, pace: Pace, kept: int = KEPT) -> None:
        self._pace = pace
        self._kept = kept
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()

    def take(self, client: str, now: float) -> bool:
        """Count a request; return False above the limit. `now` is in seconds that never go back.

        Excess requests are not counted: a persistent client is admitted at the allowed rate, and not locked
        out.
        """
        bucket = self._buckets.get(client)
        if bucket is None:
            bucket = self._buckets[client] = Bucket(self._pace.per_second, self._pace.at_once, at=now)
            if len(self._buckets) > self._kept:
                self._buckets.popitem(last=False)
        # Ordered by the last request, so the client that was silent longest is forgotten first.
        self._buckets.move_to_end(client)
        bucket.fill(now, 0)
        return bucket.level + 1 <= bucket.size and bucket.fill(now, 1)

    def has_room(self, client: str, now: float) -> bool:
        """Return whether one more request of a client is within the limit. Counts no request."""
        bucket = self._buckets.get(client)
        if bucket is None:
            return self._pace.at_once >= 1
        bucket.fill(now, 0)
        return bucket.level + 1 <= bucket.size

    def require(self, client: str, now: float, limit: str) -> None:
        """Count a request of a client; raise LimitExhausted if the request is above the limit."""
        if not self.take(client, now):
            raise LimitExhausted(limit)
