"""Servers with streams of proxies, in steps of a second: the decisions are real, the streams are numbers."""

import random
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from meshwright.records.contract import ReplicaId
from meshwright.replicas.balance import YOUNGEST_SECONDS, Share, share
from meshwright.replicas.state import ReplicaState

SAID_EVERY = 5
"""Usual seconds between two announcements of a server, as with Kubernetes."""

SPREAD = 20
"""Seconds over which a stopping server ends its streams."""


@dataclass
class Member:
    """One server: the times at which its streams began, oldest first, and what it has said last."""

    ready_at: int
    streams: deque[int] = field(default_factory=deque)
    ends_at: int | None = None

    def is_ready(self, now: int) -> bool:
        """Return whether the server is ready, so that proxies connect to it."""
        return self.ends_at is None and now >= self.ready_at

    def state(self, now: int) -> ReplicaState:
        """Return the present state."""
        is_stopping = self.ends_at is not None
        return ReplicaState(is_ready=self.is_ready(now), is_stopping=is_stopping, streams=len(self.streams))


class Fleet:
    """Servers of one mesh, whose proxies connect to a random ready server.

    `ended` counts the streams that servers have ended, by the reason, and `fullest` is the largest number of
    streams that a server has had since the beginning or the last `forget`.
    """

    def __init__(
        self, servers: int, each: int, *, sheds: bool = True, seed: int = 1, said_every: int = SAID_EVERY
    ) -> None:
        self._random = random.Random(seed)  # noqa: S311 - no secret
        self._sheds = sheds
        self._said_every = said_every
        self._said: dict[ReplicaId, ReplicaState] = {}
        self._started = 0
        self.now = 0
        self.ended = Counter[str]()
        self.fullest = 0
        self.members: dict[ReplicaId, Member] = {}
        for _ in range(servers):
            self.start(0)
        self._connect(servers * each)
        self.run(60)
        self.forget()

    def forget(self) -> None:
        """Count anew."""
        self.ended.clear()
        self.fullest = 0

    def start(self, after: int) -> None:
        """Start a server that is ready after these seconds."""
        self._started += 1
        self.members[ReplicaId(f"server-{self._started:03}")] = Member(self.now + after)

    def kill(self, name: ReplicaId) -> None:
        """End a server at once; its proxies connect to others."""
        self._said.pop(name, None)
        self._connect(len(self.members.pop(name).streams))

    def stop(self, names: Iterable[ReplicaId]) -> None:
        """End servers in order, over SPREAD seconds, and wait for their end."""
        for name in names:
            self.members[name].ends_at = self.now + SPREAD
        self.run(SPREAD)

    def run(self, seconds: int, until: Callable[[], bool] = lambda: False) -> int:
        """Let seconds pass, at most until a condition; return how many passed."""
        for passed in range(seconds):
            if until():
                return passed
            self._second()
        return seconds

    @property
    def most(self) -> int:
        """Return the present number of streams of the fullest server."""
        return max(len(member.streams) for member in self.members.values())

    def names(self) -> tuple[ReplicaId, ...]:
        """Return the names of all servers, oldest first."""
        return tuple(self.members)

    def _second(self) -> None:
        self.now += 1
        for place, (name, member) in enumerate(self.members.items()):
            if (
                (self.now + place) % self._said_every == 0
                or name not in self._said
                or member.ends_at is not None
            ):
                self._said[name] = member.state(self.now)
        for name, member in tuple(self.members.items()):
            if member.ends_at is not None:
                left = member.ends_at - self.now
                self._end(member, -(-len(member.streams) // (left + 1)), "stopped", youngest=0)
                if left <= 0:
                    del self.members[name], self._said[name]
            elif self._sheds:
                result = share(
                    name, {**self._said, name: member.state(self.now)}, max(0, self.now - member.ready_at)
                )
                if isinstance(result, Share) and result.ending:
                    self._end(member, result.ending, "shed", youngest=int(YOUNGEST_SECONDS))
        self.fullest = max(self.fullest, self.most)

    def _end(self, member: Member, count: int, reason: str, youngest: int) -> None:
        ended = 0
        while ended < count and member.streams and self.now - member.streams[0] >= youngest:
            member.streams.popleft()
            ended += 1
        self.ended[reason] += ended
        self._connect(ended)

    def _connect(self, count: int) -> None:
        ready = [member for member in self.members.values() if member.is_ready(self.now)]
        for member in self._random.choices(ready, k=count):
            member.streams.append(self.now)
