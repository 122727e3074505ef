"""The search for what a proxy refuses: all suspects are out at once, and are tried again by halves.

A proxy that refuses a response does not always say what of it is bad. Whatever may be is left out; a half of
it is let in again, and the other when that was accepted. What is refused again is halved again, until it is
one: that is guilty. Of n suspects of which d are guilty no more than 2 d log2 n + 1 are tried, and between
two trials the proxy has accepted what it is to have without the suspects.
"""

from collections.abc import Callable, Collection, Hashable, Iterable
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Trials(Generic[T]):
    """Where the search stands. `trying` is in and not yet answered, `waiting` out, the next one first.

    `guilty` is out for certain. An item is in one of them at most; what is in none is innocent, or unknown.
    """

    waiting: tuple[tuple[T, ...], ...] = ()
    trying: tuple[T, ...] = ()
    guilty: frozenset[T] = field(default_factory=frozenset)

    @property
    def out(self) -> frozenset[T]:
        """What is out."""
        return self.guilty | self.suspects

    @property
    def suspects(self) -> frozenset[T]:
        """What is out until it is tried."""
        return frozenset(each for batch in self.waiting for each in batch)

    def refused(self, blamed: Collection[T]) -> "Trials[T]":
        """Take out what was refused: one of these is bad, or more of them; they are tried in this order."""
        among = frozenset(blamed)
        others = self.less(among)
        if len(among) == 1:
            return Trials(others.waiting, (), others.guilty | among)
        return Trials((*_halves(tuple(dict.fromkeys(blamed))), *others.waiting), (), others.guilty)

    def next(self) -> "Trials[T]":
        """Let the next suspects in; what was tried until now, if anything, is innocent."""
        return replace(self, waiting=self.waiting[1:], trying=self.waiting[0] if self.waiting else ())

    def again(self, items: Iterable[T]) -> "Trials[T]":
        """Have guilty ones tried again, one by one: a wrong one costs a refusal, and no search."""
        found = tuple(each for each in items if each in self.guilty)
        return replace(
            self, waiting=(*self.waiting, *((each,) for each in found)), guilty=self.guilty - set(found)
        )

    def less(self, gone: Collection[T]) -> "Trials[T]":
        """Forget these: they are there no more, are other ones now, or are judged elsewhere."""
        if not gone:
            return self
        waiting = (_without(batch, gone) for batch in self.waiting)
        return Trials(
            tuple(batch for batch in waiting if batch), _without(self.trying, gone), self.guilty - set(gone)
        )


def guilty(suspects: Collection[T], refuses: Callable[[frozenset[T]], bool]) -> frozenset[T]:
    """Return which of these are refused, where `refuses` says at once whether some of them are, together.

    To be called where all of them are refused together, and none at all is not.
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
    return tuple(each for each in batch if each not in among)


def _halves(items: tuple[T, ...]) -> tuple[tuple[T, ...], ...]:
    middle = len(items) // 2
    return tuple(half for half in (items[:middle], items[middle:]) if half)
