"""Balance of streams between the servers of one mesh.

A proxy connects to a server at random, so servers of the same age have about equally many streams. A server
starts with none, and would get its share only as old streams end elsewhere. Each server therefore compares
its number of streams with the mean of all servers. A server above the mean ends some of them in order, and
the proxies connect again, at random. A server's balance is never a reason to refuse a stream, because the
proxy might have only this server.

A pure module.
"""

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from meshwright.records.contract import ReplicaId
from meshwright.replicas.state import ReplicaState

ALLOWED: Final = 0.1
"""Part of the mean by which a server may exceed the mean, for example 150 streams above a mean of 1500."""

CHANCE: Final = 3.0
"""Standard deviations of a random choice, by which a small server may be above the mean."""

SECONDS: Final = 15.0
"""Seconds in which the streams above the mean would be ended, at the rate of the present second."""

MOST_OF_OWN: Final = 0.02
"""Largest part of a server's streams to end in a second."""

YOUNGEST_SECONDS: Final = 30.0
"""Age in seconds below which a stream is not ended for the balance."""

READY_SECONDS: Final = 10.0
"""Minimum seconds since a server became ready: by then all other servers are known to this one."""


class Obstacle(enum.StrEnum):
    """Reasons for which a server does not compare itself with the others now."""

    ALONE = "no other server is ready"
    NOT_READY = "this server has not been ready for long enough"
    STOPPING = "a server is stopping"
    UNREADABLE = "the state of a server cannot be read"
    VERSIONS = "the servers have different versions"
    STORE = "the store is away, so the numbers of the others are old"


@dataclass(frozen=True, slots=True)
class Share:
    """Number of streams of a server, and the mean of all ready servers, which is the fair share."""

    streams: int
    mean: float

    @property
    def most(self) -> float:
        """Return the number of streams above which the server has too many."""
        return self.mean + max(ALLOWED * self.mean, CHANCE * math.sqrt(self.mean))

    @property
    def is_exceeded(self) -> bool:
        """Return whether the server has too many streams."""
        return self.streams > self.most

    @property
    def ending(self) -> int:
        """Return the number of streams to end in the next second.

        For example, a server with 2250 streams, where the mean is 1500, ends 45 of them: 50 would be a 15th
        of the 750 streams above the mean, and 45 are 2 % of all 2250.
        """
        if not self.is_exceeded:
            return 0
        return math.ceil(min((self.streams - self.mean) / SECONDS, MOST_OF_OWN * self.streams))


def share(
    own: ReplicaId,
    states: Mapping[ReplicaId, ReplicaState | None],
    ready_for: float,
    *,
    is_store_away: bool = False,
) -> Share | Obstacle:
    """Compare a server with the others; `states` has all present servers, this one included.

    `ready_for` is the number of seconds for which this server has been ready, 0 before. Only ready
    servers count, because new streams go to them. The result is an Obstacle if the numbers could be wrong
    soon, or if a moved proxy would gain nothing.
    """
    if is_store_away:
        return Obstacle.STORE
    mine = states.get(own)
    if mine is None or not mine.is_ready or ready_for < READY_SECONDS:
        return Obstacle.NOT_READY
    streams = ready = 0
    for state in states.values():
        if state is None:
            return Obstacle.UNREADABLE
        if state.is_stopping:
            return Obstacle.STOPPING
        if state.is_ready:
            if state.version != mine.version:
                return Obstacle.VERSIONS
            ready += 1
            streams += state.streams
    return Obstacle.ALONE if ready == 1 else Share(mine.streams, streams / ready)
