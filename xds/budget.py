"""What one certificate's calls cost together: kept bytes, names, types, streams, and time of the event loop.

Pure decisions; the clock is the caller's. Everything that a client sends and the server keeps is charged here
before the next request is read, and given back when the call ends.
"""

import enum
from collections.abc import Hashable
from functools import lru_cache
from typing import Final, NamedTuple

from xds.limits import Limits
from xds.protocol.type_state import Channel
from xds.protocol.wire import WireError

ENTRY_BYTES: Final = 128
"""What a name takes in the sets and mappings that hold it, besides its text (CPython 3.11 to 3.13)."""

TYPE_BYTES: Final = 8 * 1024
"""What a type takes on a stream, besides its names: its sets, the last responses, a rejection's words."""


SHARED: Final = 4096
"""So many costs of a type are one value for all to whom it costs the same."""


class LimitKind(enum.StrEnum):
    """What a client can have too much of."""

    STREAMS = "streams"
    TYPES = "types"
    NAMES = "names"
    BYTES = "bytes"
    NAME = "name-characters"
    TYPE_URL = "type-url-characters"
    NODE = "node-bytes"
    FIELD = "field-bytes"
    REQUEST = "request-bytes"
    ANSWER = "answer-bytes"


_WORDS: Final = {
    LimitKind.STREAMS: "streams with one certificate",
    LimitKind.TYPES: "types asked for with one certificate",
    LimitKind.NAMES: "resource names with one certificate",
    LimitKind.BYTES: "bytes kept for one certificate",
    LimitKind.NAME: "characters in a resource name",
    LimitKind.TYPE_URL: "characters in a type_url",
    LimitKind.NODE: "bytes in the node",
    LimitKind.FIELD: "bytes in one field of a request",
    LimitKind.REQUEST: "bytes in a request for client status or health",
    LimitKind.ANSWER: "bytes of client status (it is shorter with exclude_resource_contents)",
}


class Excess(WireError):
    """A client asks for more than is good: of what, how much (or how much at least), and what is allowed."""

    def __init__(self, bound: LimitKind, value: int, limit: int) -> None:
        super().__init__(f"{value} {_WORDS[bound]}; {limit} are allowed")
        self.bound = bound
        self.value = value
        self.limit = limit


class Cost(NamedTuple):
    """What something takes of a budget."""

    types: int = 0
    names: int = 0
    bytes: int = 0


NOTHING: Final = Cost()


def cost(channel: Channel) -> Cost:
    """Return what a client makes us keep of one type on one stream; costs the same however much that is."""
    subscription = channel.subscription
    names = len(subscription.names) + channel.resumed
    text = subscription.text + channel.resumed_text + channel.told_text
    return _of_type(names, text)


@lru_cache(SHARED)
def _of_type(names: int, text: int) -> Cost:
    """Return what a type costs: one value for the many to whom it costs the same."""
    return Cost(1, names, TYPE_BYTES + names * ENTRY_BYTES + text)


def check(bound: LimitKind, value: int, limit: int | None) -> None:
    """Raise Excess for a value over the limit; None is no limit."""
    if limit is not None and value > limit:
        raise Excess(bound, value, limit)


class Share:
    """A certificate's part of the event loop: a bucket of seconds, refilled at a `rate` of seconds a second.

    A `rate` of None has no bottom. `now` is any clock in seconds that only goes forward.
    """

    __slots__ = ("_at", "_burst", "_left", "_rate")

    def __init__(self, rate: float | None, burst: float) -> None:
        self._rate = rate
        self._burst = burst
        self._left = burst
        self._at = 0.0

    @property
    def is_spent(self) -> bool:
        """Say whether nothing was left when something was last taken; asks no clock."""
        return self._rate is not None and self._left <= 0

    def spend(self, seconds: float, now: float) -> None:
        """Take what was just spent, also where it is more than there is."""
        if self._rate is not None:
            self._refill(self._rate, now)
            self._left -= seconds

    def wait(self, now: float) -> float:
        """Return for how many seconds nothing more may be spent; 0 if there is something left."""
        if self._rate is None or not self.is_spent:
            return 0.0
        self._refill(self._rate, now)
        return max(0.0, -self._left / self._rate)

    def is_full(self, now: float) -> bool:
        """Say whether there is nothing to remember."""
        return self._rate is None or self._left + (now - self._at) * self._rate >= self._burst

    def _refill(self, rate: float, now: float) -> None:
        self._left = min(self._burst, self._left + (now - self._at) * rate)
        self._at = now


class Account:
    """What one certificate's calls take, all together; it may have `limits.streams_per_certificate` calls."""

    __slots__ = ("__weakref__", "_limits", "share", "streams", "taken")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.streams = 0
        self.taken = NOTHING
        self.share = Share(limits.loop_share, limits.loop_burst_seconds)

    def change(self, old: Cost, new: Cost) -> None:
        """Charge `new` in the place of `old`; raise Excess, and charge nothing, if that is too much.

        The call that asked for it ends; until it has, the others of its certificate go on within their means.
        """
        types, names, size = self.taken
        taken = Cost(
            types + new.types - old.types, names + new.names - old.names, size + new.bytes - old.bytes
        )
        limits = self._limits
        check(LimitKind.TYPES, taken.types, limits.types_per_certificate)
        check(LimitKind.NAMES, taken.names, limits.names_per_certificate)
        check(LimitKind.BYTES, taken.bytes, limits.bytes_per_certificate)
        self.taken = taken


class Bill:
    """One call's part of its certificate's account, item by item."""

    __slots__ = ("_items", "account")

    def __init__(self, account: Account) -> None:
        self.account = account
        self._items: dict[Hashable, Cost] = {}

    def charge(self, item: Hashable, cost: Cost) -> None:
        """Set what an item takes; raise Excess if it is too much for the account."""
        old = self._items.get(item, NOTHING)
        if cost != old:
            self.account.change(old, cost)
            self._items[item] = cost

    def release(self, item: Hashable) -> None:
        """Give one item back."""
        self._give_back(self._items.pop(item, NOTHING))

    def settle(self) -> None:
        """Give everything back: the call has ended."""
        for cost in self._items.values():
            self._give_back(cost)
        self._items.clear()

    def _give_back(self, cost: Cost) -> None:
        self.account.taken = Cost(*(have - less for have, less in zip(self.account.taken, cost, strict=True)))


class Accounts:
    """The accounts of all certificates that have calls, or had them so lately that it is remembered."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._accounts: dict[bytes | None, Account] = {}

    def of(self, certificate: bytes | None) -> Account:
        """Return a certificate's account, a new one if it has none."""
        found = self._accounts.get(certificate)
        if found is None:
            found = self._accounts[certificate] = Account(self._limits)
        return found

    def forget(self, now: float) -> None:
        """Forget the accounts that have no call and owe no time: who reconnects would find the same anew."""
        for certificate, account in tuple(self._accounts.items()):
            if not account.streams and account.share.is_full(now):
                del self._accounts[certificate]

    def __len__(self) -> int:
        return len(self._accounts)
