"""Budget of one client certificate: bytes kept, names, types, streams, and time of the event loop.

All decisions are pure; the caller passes the time. All content from a client that stays in the server's
memory is charged here before the next request is read, and released when the call ends.

One `Account` exists for each certificate, and one `Bill` for each call. A bill charges items, for example the
subscription of one type, to the account of the certificate. The account refuses a charge beyond `Limits`, and
the call ends. The `Share` of an account bounds the time on the event loop: a call without remaining time
waits, because ending the call would only make the client reconnect.
"""

import enum
from collections.abc import Hashable
from functools import lru_cache
from typing import Final, NamedTuple

from xds.limits import Limits
from xds.protocol.type_state import Channel
from xds.protocol.wire import WireError

ENTRY_BYTES: Final = 128
"""Bytes per name in sets and mappings, without the text (CPython 3.11 to 3.13)."""

TYPE_BYTES: Final = 8 * 1024
"""Bytes per type on a stream without the names: sets, last responses, the message of a rejection."""


SHARED: Final = 4096
"""Number of cached costs. Types with the same cost share one `Cost` object."""


class LimitKind(enum.StrEnum):
    """The quantities of a client with a limit, for example the number of streams."""

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
    """A client exceeded a limit: the kind of limit, the value (or a lower bound of it), and the maximum."""

    def __init__(self, bound: LimitKind, value: int, limit: int) -> None:
        super().__init__(f"{value} {_WORDS[bound]}; {limit} are allowed")
        self.bound = bound
        self.value = value
        self.limit = limit


class Cost(NamedTuple):
    """The part of a certificate's budget taken by one item: types, names and bytes."""

    types: int = 0
    names: int = 0
    bytes: int = 0


NOTHING: Final = Cost()


def cost(channel: Channel) -> Cost:
    """Return the cost of one type on one stream, in constant time.

    The cost counts the names in the subscription, the resources listed by a reconnecting client, and the
    names in unacknowledged removals.
    """
    subscription = channel.subscription
    names = len(subscription.names) + channel.resumed
    text = subscription.text + channel.resumed_text + channel.removals_text
    return _of_type(names, text)


@lru_cache(SHARED)
def _of_type(names: int, text: int) -> Cost:
    """Return the cost of a type; equal costs are one object, because thousands of streams have the same."""
    return Cost(1, names, TYPE_BYTES + names * ENTRY_BYTES + text)


def check(bound: LimitKind, value: int, limit: int | None) -> None:
    """Raise Excess if the value is above the limit of this kind. With None any value is allowed."""
    if limit is not None and value > limit:
        raise Excess(bound, value, limit)


class Share:
    """A certificate's share of the event loop: a token bucket of seconds, refilled at `rate` s per second.

    With a `rate` of None the bucket is never empty. `now` is any monotonic clock in seconds. For example,
    with a rate of 0.2 and 1 s used, the bucket needs 5 s to refill.
    """

    __slots__ = ("_at", "_burst", "_left", "_rate")

    def __init__(self, rate: float | None, burst: float) -> None:
        self._rate = rate
        self._burst = burst
        self._left = burst
        self._at = 0.0

    @property
    def is_spent(self) -> bool:
        """Return whether the bucket was empty after the last `spend` or `wait`; reads no clock."""
        return self._rate is not None and self._left <= 0

    def spend(self, seconds: float, now: float) -> None:
        """Take the seconds just used on the event loop, even if the bucket has fewer left."""
        if self._rate is not None:
            self._refill(self._rate, now)
            self._left -= seconds

    def wait(self, now: float) -> float:
        """Return the seconds to wait until the bucket has time again; 0 if some is left now."""
        if self._rate is None or not self.is_spent:
            return 0.0
        self._refill(self._rate, now)
        return max(0.0, -self._left / self._rate)

    def is_full(self, now: float) -> bool:
        """Return whether the bucket is full, so that a new one would be equal."""
        return self._rate is None or self._left + (now - self._at) * self._rate >= self._burst

    def _refill(self, rate: float, now: float) -> None:
        self._left = min(self._burst, self._left + (now - self._at) * rate)
        self._at = now


class Account:
    """Sum of the costs of all calls of one certificate, against the limits per certificate."""

    __slots__ = ("__weakref__", "_limits", "share", "streams", "taken")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.streams = 0
        self.taken = NOTHING
        self.share = Share(limits.loop_share, limits.loop_burst_seconds)

    def change(self, old: Cost, new: Cost) -> None:
        """Charge `new` in place of `old`; raise Excess, without a charge, if the sum would exceed a limit.

        Only the charged call ends; other calls of the same certificate continue.
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
    """The items charged by one call to the account of the certificate."""

    __slots__ = ("_items", "account")

    def __init__(self, account: Account) -> None:
        self.account = account
        self._items: dict[Hashable, Cost] = {}

    def charge(self, item: Hashable, cost: Cost) -> None:
        """Set the cost of an item; raise Excess if the cost exceeds the account's limits."""
        old = self._items.get(item, NOTHING)
        if cost != old:
            self.account.change(old, cost)
            self._items[item] = cost

    def release(self, item: Hashable) -> None:
        """Release the cost of one item."""
        self._give_back(self._items.pop(item, NOTHING))

    def settle(self) -> None:
        """Release the cost of every item, when the call has ended."""
        for cost in self._items.values():
            self._give_back(cost)
        self._items.clear()

    def _give_back(self, cost: Cost) -> None:
        self.account.taken = Cost(*(have - less for have, less in zip(self.account.taken, cost, strict=True)))


class Accounts:
    """The accounts of all certificates with calls, or with a share not refilled since."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._accounts: dict[bytes | None, Account] = {}

    def account(self, certificate: bytes | None) -> Account:
        """Return the account of a certificate, created at first use."""
        account = self._accounts.get(certificate)
        if account is None:
            account = self._accounts[certificate] = Account(self._limits)
        return account

    def forget(self, now: float) -> None:
        """Drop accounts without calls and with a full share, because a new account would be equal."""
        for certificate, account in tuple(self._accounts.items()):
            if not account.streams and account.share.is_full(now):
                del self._accounts[certificate]

    def __len__(self) -> int:
        return len(self._accounts)
