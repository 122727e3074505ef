"""How often somebody may ask: by address, by token, by proxy. Decisions, with the time as an argument."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from xds.connections.table import Bucket

KEPT: Final = 10_000
"""So many who have asked are remembered; beyond that, who has not asked for longest is forgotten."""


@dataclass(frozen=True, slots=True)
class Pace:
    """So many at once, less what is forgotten at `per_second`."""

    at_once: float
    per_second: float


@dataclass(frozen=True, slots=True)
class EnrolmentLimits:
    """Bounds of both ports, in seconds, bytes and numbers.

    `by_address` counts the requests to join that came to nothing. `under_way` are calls that are being
    answered, of everybody; `call_seconds` is the longest a call may take until its request has come.
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
    said: Pace = Pace(20, 1 / 6)


class LimitExhausted(Exception):
    """Somebody asks too often: `what` is by which measure. Later it is let in."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


class Allowances:
    """What each of many has left of one pace."""

    def __init__(self, pace: Pace, kept: int = KEPT) -> None:
        self._pace = pace
        self._kept = kept
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()

    def take(self, who: str, now: float) -> bool:
        """Note that somebody asks; say whether it is not too often. `now` only goes forward, in seconds.

        What was too often is not counted: who goes on asking is let in at his pace, and not shut out by it.
        """
        bucket = self._buckets.get(who)
        if bucket is None:
            bucket = self._buckets[who] = Bucket(self._pace.per_second, self._pace.at_once, at=now)
            if len(self._buckets) > self._kept:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(who)
        bucket.fill(now, 0)
        return bucket.level + 1 <= bucket.size and bucket.fill(now, 1)

    def has_room(self, who: str, now: float) -> bool:
        """Say whether somebody could ask once more; nothing is counted and nobody is remembered."""
        bucket = self._buckets.get(who)
        if bucket is None:
            return self._pace.at_once >= 1
        bucket.fill(now, 0)
        return bucket.level + 1 <= bucket.size

    def require(self, who: str, now: float, what: str) -> None:
        """Do the same; raise LimitExhausted where it is too often."""
        if not self.take(who, now):
            raise LimitExhausted(what)
