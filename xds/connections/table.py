"""Which connections of clients are to be ended: a table of those there are, and the bounds on them.

A connection carries calls or is idle: in its handshake, after it, or between two calls. All that is known of
one comes from two sides: the calls begun and finished on it, by its address, and from time to time a look at
the system's sockets. Time is an argument, seconds of any clock that only goes forward.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from xds.hooks import Cause, Peer
from xds.limits import Limits

BURST: Final = 8
"""So many of the largest requests may come at once: a sidecar answers each push with all its names."""
SILENT_PART: Final = 4
"""Of the idle connections one in so many may be one on which nothing was ever received."""
SPEAK_SECONDS: Final = 1.0
"""So long a connection may be there before it counts as one of these: when all come back, many speak late."""

IN_TURN: Final = 8
"""Of those that carry calls one in so many is looked at each time."""
AT_LEAST: Final = 256
"""So many of them, or all."""

Address = tuple[str, int]
"""A client's IP address and port."""


@dataclass(frozen=True, slots=True)
class Socket:
    """A connection as the system shows it: its number is never given twice; `received` counts bytes.

    `quiet` is how many seconds ago the last of them came, or the connection if there were none.
    """

    number: int
    address: Address
    received: int
    quiet: float = 0.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """A connection that is to be ended, with what is known of who made it."""

    socket: Socket
    peer: Peer
    cause: Cause


@dataclass(slots=True)
class Bucket:
    """What flows in leaks out at `rate` a second; more than `size` is too much, and it holds twice that."""

    rate: float
    size: float
    level: float = 0.0
    at: float = 0.0

    def fill(self, now: float, amount: float) -> bool:
        """Take in an amount; say whether it was not too much."""
        self.level = min(max(0.0, self.level - (now - self.at) * self.rate) + amount, 2 * self.size)
        self.at = now
        return self.level <= self.size

    def is_empty(self, now: float) -> bool:
        """Say whether all has leaked out."""
        return self.level <= (now - self.at) * self.rate


@dataclass(slots=True)
class _Use:
    """The calls of one address; `over` when there was one too many."""

    peer: Peer
    at: float
    open: int = 0
    begun: int = 0
    over: bool = False


@dataclass(slots=True)
class _KnownConnection:
    """A connection from look to look: since when it has been idle (None: it is not), and its bytes then."""

    socket: Socket
    bytes: Bucket
    idle: float | None
    before: int = 0
    begun: int = 0


class Connections:
    """The connections of one server's clients, with at most `idle` of them idle.

    One that carries a call is calm if that costs nothing: until the call ends, or is one too many, it need
    not be looked at, but for the bytes that it receives. So the calm are looked at in turn.
    """

    def __init__(self, limits: Limits, idle: int) -> None:
        self._limits = limits
        self._idle = idle
        self._uses: dict[Address, _Use] = {}
        self._known: dict[int, _KnownConnection] = {}
        self._numbers: dict[Address, int] = {}
        self._calm: dict[int, None] = {}  # who was looked at longest ago comes first
        self._restless: dict[int, None] = {}
        self._resting: set[Address] = set()  # those that carry no call
        self._calls: dict[bytes | Address, Bucket] = {}
        self.crowded = False
        """Whether more were left in the last look than may stay silent, for they had only just come."""

    def begun(self, now: float, address: Address, peer: Peer) -> bool:
        """Note a call; say whether it may go on. If not, its connection goes with the next look.

        All connections of one certificate together may begin so many.
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
        """Note the end of a call."""
        use = self._uses[address]
        use.at, use.open = now, use.open - 1
        if not use.open:
            self._resting.add(address)
            self._stir(address)

    def due(self) -> tuple[int, ...]:
        """Return those that are to be looked at now, of those that are known: all others are calm."""
        turn = islice(self._calm, max(AT_LEAST, -(-len(self._calm) // IN_TURN)))
        return (*self._restless, *turn)

    def look(self, now: float, sockets: Iterable[Socket], due: Iterable[int]) -> tuple[Verdict, ...]:
        """Return what is to be ended of the connections there were at `now`, each with its one cause.

        It was looked at those that were `due`, and who came: what is not among the sockets is gone. One that
        carries a call, and is the very object that it was in the last look, is passed over: nothing is other.
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
            each.socket.number: self._verdict(each, cause) for each, cause in self._too_dear(now, restless)
        }
        idle = [each for each in restless if each.socket.number not in ended]
        ended |= {each.socket.number: self._verdict(each, Cause.CROWD) for each in self._crowd(now, idle)}
        return tuple(ended.values())

    def stands(self, verdict: Verdict) -> bool:
        """Say whether a connection is still to be ended: one that was idle may carry a call by now."""
        use = self._uses.get(verdict.socket.address)
        return verdict.cause not in (Cause.IDLE, Cause.CROWD) or not use or not use.open

    def _stir(self, address: Address) -> None:
        """Have a connection looked at the next time."""
        if (number := self._numbers.get(address)) is not None:
            self._calm.pop(number, None)
            self._restless[number] = None

    def _place(self, known: _KnownConnection) -> None:
        """Keep a connection that was just looked at; a calm one has its next turn after all others."""
        number = known.socket.number
        self._known[number] = known
        self._numbers[known.socket.address] = number
        self._calm.pop(number, None)
        self._restless.pop(number, None)
        (self._calm if self._is_calm(known.socket, known) else self._restless)[number] = None

    def _is_calm(self, socket: Socket, known: _KnownConnection) -> bool:
        """Say whether nothing is to be thought of a connection since the last look."""
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
        """Return the idle ones beyond the bounds: first who never said a word, then who did so longest ago.

        A client that means it speaks soon, and carries a call a moment later: it is among the last. Many may
        do so together, when all come back; so of those that are silent fewer may be there for long.
        """
        idle = [(bool(each.socket.received), each.idle, each) for each in known if each.idle is not None]
        idle.sort(key=lambda each: each[:2])
        silent = sum(not spoke and now - since >= SPEAK_SECONDS for spoke, since, _ in idle)
        allowed = self._idle // SILENT_PART
        surplus = max(0, len(idle) - self._idle, silent - allowed)
        self.crowded = sum(not spoke for spoke, _, _ in idle[surplus:]) > allowed
        return [each for _, _, each in idle[:surplus]]

    def _verdict(self, known: _KnownConnection, cause: Cause) -> Verdict:
        use = self._uses.get(known.socket.address)
        host, port = known.socket.address
        where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        return Verdict(known.socket, use.peer if use else Peer(None, where), cause)

    def _forget(self, now: float, gone: Iterable[int]) -> None:
        """Forget connections that are not there any more, and what addresses did that have none."""
        for number in gone:
            address = self._known.pop(number).socket.address
            self._calm.pop(number, None)
            self._restless.pop(number, None)
            if self._numbers.get(address) == number:
                del self._numbers[address]
        for address in [each for each in self._resting if self._uses[each].at < now]:
            if address not in self._numbers:
                self._resting.discard(address)
                del self._uses[address]
        for client in [each for each, bucket in self._calls.items() if bucket.is_empty(now)]:
            del self._calls[client]
