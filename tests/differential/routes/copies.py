"""Copies of requests by the text of the specification: at which mirrors they must and may arrive."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from catalog.oracle.decide import Place, Request, admitting, places
from catalog.oracle.gateway import Way, place_of
from meshwright.mesh.gateway.filters import Filters, Mirror
from tests.differential.routes.effects import RuleEffect, accounts_of
from tests.differential.servers import Journal
from tests.tools.deadline import until


@dataclass(frozen=True)
class Copies:
    """The servers at which copies and tries may arrive, and the least number of copies."""

    possible: frozenset[str] = frozenset()
    least: int = 0


def copies_of(effect: RuleEffect, by: str) -> Copies:
    """Return the copies of a request that server `by` has answered; no copy is certain if none has."""
    possible: set[str] = set()
    least: list[int] = []
    for way in effect.routed.ways:
        if not way.weight:
            continue
        # A retry may have reached another server of the same backend.
        there = places(effect.view, way.service, way.port)
        possible.update(_account(place) for place in there if _takes(effect, way.request, place))
        received = [
            _receivers(effect, way, item) for item in (*effect.rule.filters.mirrors, *way.own.mirrors)
        ]
        possible.update(*(accounts for accounts, _ in received))
        if by in accounts_of(effect.view, way):
            least.append(sum(is_certain for _, is_certain in received))
    return Copies(frozenset(possible), min(least, default=0))


def _receivers(effect: RuleEffect, way: Way, mirror: Mirror) -> tuple[set[str], bool]:
    """Return the servers that take copies of a mirror, and whether every copy arrives at one."""
    to = place_of(effect.view, effect.found.key, mirror.backend, Filters())
    if to is None or mirror.numerator == 0:
        return set(), False
    there = places(effect.view, *to)
    # The specification does not say whether a copy has the changes of the chosen backend.
    forms = (way.request, effect.sent_by_rule)
    possible = {_account(place) for place in there if any(_takes(effect, form, place) for form in forms)}
    certain = [place for place in there if all(_takes(effect, form, place) for form in forms)]
    return possible, bool(there) and len(certain) == len(there) and mirror.numerator == mirror.denominator


def _takes(effect: RuleEffect, request: Request, place: tuple[Place, bool]) -> bool:
    return admitting(effect.view, request, place) is not None


def _account(place: tuple[Place, bool]) -> str:
    return str(place[0].identity.service_account)


@dataclass
class Watched:
    """Requests whose copies are known, until all of them had the time to arrive."""

    journal: Journal
    expected: dict[str, frozenset[str]] = field(default_factory=dict)

    async def arrived(self, number: str, copies: Copies, by: str) -> str:
        """Wait for the certain copies of a request; return what is wrong, or an empty text."""
        self.expected[number] = copies.possible | {by}
        wanted = copies.least + bool(by)
        try:
            await until(lambda: len(self.journal.of(number)) >= wanted)
        except AssertionError:
            return f"{len(self.journal.of(number))} requests and copies arrived, and should be {wanted}"
        return ""

    def strays(self) -> Iterable[tuple[str, set[str]]]:
        """Return the requests of which a copy has arrived at another server, with these servers."""
        for number, accounts in self.expected.items():
            if others := {arrival.by for arrival in self.journal.of(number)} - accounts:
                yield number, others
