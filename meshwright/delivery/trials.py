"""Search for the items that a proxy rejects: exclude all suspects, then offer them again by halves.

A NACK does not always name the resource at fault. All suspects are excluded first; then one half is offered
again, and the other half once the first is accepted. A rejected half is halved again until a single item is
left, and this item is guilty. For n suspects with d guilty items the search needs at most 2 d log2(n) + 1
trials. Between two trials the proxy has accepted its configuration without the suspects.

For example: suspects a, b, c, d of which c is guilty. Offered are (a, b): accepted, (c, d): rejected, (c):
rejected and so guilty, (d): accepted.
"""

from collections.abc import Callable, Collection, Hashable, Iterable
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Trials(Generic[T]):
    """State of a search. `trying` is offered and not answered yet; `waiting` are excluded batches, in order.

    `guilty` items are excluded for certain. An item is in at most one of the three; an item in none of them
    is innocent or was never suspected.
    """

    waiting: tuple[tuple[T, ...], ...] = ()
    trying: tuple[T, ...] = ()
    guilty: frozenset[T] = field(default_factory=frozenset)

    @property
    def out(self) -> frozenset[T]:
        """All excluded items: guilty ones, and those waiting for a trial."""
        return self.guilty | self.suspects

    @property
    def suspects(self) -> frozenset[T]:
        """Items excluded until they are tried."""
        return frozenset(item for batch in self.waiting for item in batch)

    def refused(self, blamed: Collection[T]) -> "Trials[T]":
        """Return the state after a rejection by one or more of `blamed`, to be tried in this order."""
        among = frozenset(blamed)
        others = self.less(among)
        if len(among) == 1:
            return Trials(others.waiting, (), others.guilty | among)
        # In front of the other batches, so one search ends before the next begins.
        return Trials((*_halves(tuple(dict.fromkeys(blamed))), *others.waiting), (), others.guilty)

    def next(self) -> "Trials[T]":
        """Return the state with the next batch of items on trial; the items tried before are innocent."""
        return replace(self, waiting=self.waiting[1:], trying=self.waiting[0] if self.waiting else ())

    def again(self, items: Iterable[T]) -> "Trials[T]":
        """Return the state in which these guilty items will be offered again, one by one.

        A wrong guess then costs one rejection, and no new search.
        """
        # One batch per item: if one is rejected again, the others are not suspected.
        result = tuple(item for item in items if item in self.guilty)
        return replace(
            self,
            waiting=(*self.waiting, *((element,) for element in result)),
            guilty=self.guilty - set(result),
        )

    def less(self, gone: Collection[T]) -> "Trials[T]":
        """Return the state without these items, which were removed or changed, or are judged elsewhere."""
        if not gone:
            return self
        waiting = (_without(batch, gone) for batch in self.waiting)
        return Trials(
            tuple(batch for batch in waiting if batch), _without(self.trying, gone), self.guilty - set(gone)
        )


def guilty(suspects: Collection[T], refuses: Callable[[frozenset[T]], bool]) -> frozenset[T]:
    """Return the rejected items; `refuses` returns at once whether a set of them is rejected.

    Call this only if all items together are rejected, and the empty set is not. Used for resources that the
    driver can judge by itself, without a proxy.
    """
    nothing: Trials[T] = Trials()
    trials = nothing.refused(suspects)
    innocent: frozenset[T] = frozenset()
    while trials.waiting:
        trials = trials.next()
        if refuses(innocent | frozenset(trials.trying)):
            trials = trials.refused(trials.trying)
        else:
            innocent |= frozenset(trials.trying)
    return trials.guilty


def _without(batch: tuple[T, ...], among: Collection[T]) -> tuple[T, ...]:
    return tuple(item for item in batch if item not in among)


def _halves(items: tuple[T, ...]) -> tuple[tuple[T, ...], ...]:
    middle = len(items) // 2
    return tuple(half for half in (items[:middle], items[middle:]) if half)
