"""Table of client connections, with the decision to end some of them.

A connection either carries calls or is idle (during the handshake, after it, or between two calls). The table
knows two facts about a connection: the begun and finished calls on the address, and the looks at the system's
sockets. Time is an argument, in seconds of any monotonic clock.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from xds.hooks import Cause, Peer
from xds.limits import Limits

BURST: Final = 8
"""Burst of received bytes, in largest requests: a sidecar answers each push with all names."""
SILENT_PART: Final = 4
"""One idle connection in this many may be silent, that is, without any received byte."""
SPEAK_SECONDS: Final = 1.0
"""Seconds before a connection without a byte counts as silent: after a restart many clients start slowly."""

IN_TURN: Final = 8
"""Fraction of the calm connections examined by each look: one in this many."""
AT_LEAST: Final = 256
"""Least number of calm connections examined by each look, if there are as many."""

Address = tuple[str, int]
"""A client's IP address and port."""


@dataclass(frozen=True, slots=True)
class Socket:
    """A connection as shown by the system. `number` is unique over time (the inode); `received` counts bytes.

    `quiet` is the seconds since the last byte, or since the start of a connection without any.
    """

    number: int
    address: Address
    received: int
    quiet: float = 0.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """A connection to end, with its client and the cause."""

    socket: Socket
    peer: Peer
    cause: Cause


@dataclass(slots=True)
class Bucket:
    """A leaky bucket with a drain of `rate` per second.

    A level above `size` is too much; the level is capped at 2 * `size`.
    """

    rate: float
    size: float
    level: float = 0.0
    at: float = 0.0

    def fill(self, now: float, amount: float) -> bool:
        """Add an amount; return whether the level is still within `size`."""
        self.level = min(max(0.0, self.level - (now - self.at) * self.rate) + amount, 2 * self.size)
        self.at = now
        return self.level <= self.size

    def is_empty(self, now: float) -> bool:
        """Return whether the bucket has drained."""
        return self.level <= (now - self.at) * self.rate


@dataclass(slots=True)
class _Use:
    """The calls from one address (host and port). `over` is True after one call beyond the rate limit."""

    peer: Peer
    at: float
    open: int = 0
    begun: int = 0
    over: bool = False


@dataclass(slots=True)
class _KnownConnection:
    """A connection between two looks.

    `idle` is the time of the end of the last call (None during a call), and `before` the received bytes at
    `idle`.
    """

    socket: Socket
    bytes: Bucket
    idle: float | None
    before: int = 0
    begun: int = 0


class Connections:
    """The connections of one server's clients, with at most `idle` idle ones.

    A connection with an open call is calm: until the call ends, or one exceeds the rate limit, only received
    bytes can put the connection beyond a limit. Therefore calm connections are examined in turn, and a look
    costs little when thousands are connected.
    """

    def __init__(self, limits: Limits, idle: int) -> None:
        self._limits = limits
        self._idle = idle
        self._uses: dict[Address, _Use] = {}
        self._known: dict[int, _KnownConnection] = {}
        self._numbers: dict[Address, int] = {}
        self._calm: dict[int, None] = {}  # in the order of the last look, oldest first
        self._restless: dict[int, None] = {}
        self._resting: set[Address] = set()  # addresses without an open call
        self._calls: dict[bytes | Address, Bucket] = {}
        self.crowded = False
        """True if the last look left too many silent connections, because they were too new to count."""

    def begun(self, now: float, address: Address, peer: Peer) -> bool:
        """Record a call; return whether the call may continue. If not, the next look ends the connection.

        The rate limit applies to all connections of one certificate together.
        """
        use = self._uses.setdefault(address, _Use(peer, now))
        use.at, use.open, use.begun = now, use.open + 1, use.begun + 1
        self._resting.discard(address)
        if self._limits.calls_per_second is None:
            return True
        client = peer.certificate or address
        if client not in self._calls:
            self._calls[client] = Bucket(self._limits.calls_per_second, self._limits.calls_at_once, at=now)
        if not self._calls[client].fill(now, 1):
            use.over = True
            self._stir(address)
        return not use.over

    def finished(self, now: float, address: Address) -> None:
        """Record the end of a call from an address."""
        use = self._uses[address]
        use.at, use.open = now, use.open - 1
        if not use.open:
            self._resting.add(address)
            self._stir(address)

    def due(self) -> tuple[int, ...]:
        """Return the numbers of the known sockets to examine now; all others are calm."""
        turn = islice(self._calm, max(AT_LEAST, -(-len(self._calm) // IN_TURN)))
        return (*self._restless, *turn)

    def look(self, now: float, sockets: Iterable[Socket], due: Iterable[int]) -> tuple[Verdict, ...]:
        """Return the connections to end, each with one cause, given the sockets seen at `now`.

        `sockets` are the existing ones of `due`, and new ones. A number in `due` without a socket is gone. A
        calm connection with the same socket object as in the last look is without news, and is skipped.
        """
        restless, gone = [], set(due)
        for socket in sockets:
            gone.discard(socket.number)
            known = self._known.get(socket.number)
            if known is None or not self._is_calm(socket, known):
                known = self._seen(now, socket, known)
                restless.append(known)
            self._place(known)
        self._forget(now, gone)
        ended = {
            connection.socket.number: self._verdict(connection, cause)
            for connection, cause in self._too_dear(now, restless)
        }
        idle = [connection for connection in restless if connection.socket.number not in ended]
        ended |= {
            connection.socket.number: self._verdict(connection, Cause.CROWD)
            for connection in self._crowd(now, idle)
        }
        return tuple(ended.values())

    def is_still_valid(self, verdict: Verdict) -> bool:
        """Return whether a verdict is still valid: an idle connection may carry a call by now."""
        use = self._uses.get(verdict.socket.address)
        return verdict.cause not in (Cause.IDLE, Cause.CROWD) or not use or not use.open

    def _stir(self, address: Address) -> None:
        """Mark the connection of an address for examination in the next look."""
        if (number := self._numbers.get(address)) is not None:
            self._calm.pop(number, None)
            self._restless[number] = None

    def _place(self, known: _KnownConnection) -> None:
        """Store a connection after its examination. A calm one moves to the end of the queue."""
        number = known.socket.number
        self._known[number] = known
        self._numbers[known.socket.address] = number
        self._calm.pop(number, None)
        self._restless.pop(number, None)
        (self._calm if self._is_calm(known.socket, known) else self._restless)[number] = None

    def _is_calm(self, socket: Socket, known: _KnownConnection) -> bool:
        """Return whether a connection cannot have reached a limit since the last look."""
        if known.socket is not socket or known.idle is not None or known.bytes.level > known.bytes.size:
            return False
        use = self._uses.get(socket.address)
        return use is not None and use.open > 0 and not use.over

    def _seen(self, now: float, socket: Socket, known: _KnownConnection | None) -> _KnownConnection:
        use = self._uses.get(socket.address)
        if known is None:
            rate, size = self._limits.received_bytes_per_second, BURST * self._limits.request_bytes
            known = _KnownConnection(socket, Bucket(rate, size, at=now), now - socket.quiet)
            new = socket.received
        else:
            new = socket.received - known.socket.received
        known.socket = socket
        known.bytes.fill(now, new)
        begun, known.begun = known.begun, use.begun if use else 0
        if use and use.open:
            known.idle = None
        elif known.idle is None or begun != known.begun:
            known.idle, known.before = now, socket.received
        return known

    def _too_dear(
        self, now: float, looked_at: Iterable[_KnownConnection]
    ) -> Iterator[tuple[_KnownConnection, Cause]]:
        for known in looked_at:
            use = self._uses.get(known.socket.address)
            unasked = known.socket.received - known.before
            if use and use.over:
                yield known, Cause.CALLS
            elif known.bytes.level > known.bytes.size:
                yield known, Cause.BYTES
            elif known.idle is None:
                continue
            elif unasked > self._limits.idle_bytes:
                yield known, Cause.BYTES
            elif now - known.idle > self._limits.idle_seconds:
                yield known, Cause.IDLE

    def _crowd(self, now: float, known: Collection[_KnownConnection]) -> list[_KnownConnection]:
        """Return the idle connections beyond the limits: silent ones first, then the longest idle ones.

        An honest client soon sends the first bytes and then begins a call, so is among the last to be ended.
        After a restart many honest clients connect at once. Therefore a connection counts as silent only
        after SPEAK_SECONDS.
        """
        idle = [
            (bool(connection.socket.received), connection.idle, connection)
            for connection in known
            if connection.idle is not None
        ]
        idle.sort(key=lambda item: item[:2])
        silent = sum(not spoke and now - since >= SPEAK_SECONDS for spoke, since, _ in idle)
        allowed = self._idle // SILENT_PART
        surplus = max(0, len(idle) - self._idle, silent - allowed)
        self.crowded = sum(not spoke for spoke, _, _ in idle[surplus:]) > allowed
        return [connection for _, _, connection in idle[:surplus]]

    def _verdict(self, known: _KnownConnection, cause: Cause) -> Verdict:
        use = self._uses.get(known.socket.address)
        host, port = known.socket.address
        where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        return Verdict(known.socket, use.peer if use else Peer(None, where), cause)

    def _forget(self, now: float, gone: Iterable[int]) -> None:
        """Drop ended connections, and the counters of addresses without a connection."""
        for number in gone:
            address = self._known.pop(number).socket.address
            self._calm.pop(number, None)
            self._restless.pop(number, None)
            if self._numbers.get(address) == number:
                del self._numbers[address]
        for address in [item for item in self._resting if self._uses[item].at < now]:
            if address not in self._numbers:
                self._resting.discard(address)
                del self._uses[address]
        for client in [item for item, bucket in self._calls.items() if bucket.is_empty(now)]:
            del self._calls[client]
