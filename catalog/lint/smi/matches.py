"""Problems of HTTP matches: said twice, without effect, or on headers that no rule sees as they were sent."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

from catalog.lint.budget import Budget, within
from catalog.lint.codes import Code
from catalog.lint.smi.hosts import never_sent
from catalog.lint.smi.match_coverage import MatchIndex, Shape
from catalog.lint.wording import Place, say
from catalog.oracle.request.expressions import fits_in_full, fits_no_path, text_of
from catalog.oracle.request.headers import SET, UNSEEN
from catalog.oracle.request.paths import LocalReply, passed_on
from catalog.policy.access import in_force, rule_matches
from catalog.store.view import View
from meshwright.mesh.kinds import HTTP_ROUTE_GROUP, TRAFFIC_TARGET
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.smi import HeaderMatch, HTTPMatch, HTTPRouteGroup, RouteKind, TrafficTarget
from meshwright.mesh.problems.problem import Problem, Severity
from meshwright.mesh.service import EscapedSlashes

_HOST: Final = ("host", ":authority")
_READ: Final = 20
"""Steps that it takes to read a path's expression, which is compiled for that."""


def of_group(view: View, group: HTTPRouteGroup) -> Iterator[Problem]:
    """Yield the problems of an HTTPRouteGroup's matches."""
    key = ObjectKey.of(HTTP_ROUTE_GROUP, group.key)
    place = Place(view, key)
    yield from within(place, "spec.matches", "matches that never fit", partial(_useless, view, key, group))
    first: dict[Shape, HTTPMatch] = {}
    for number, match in enumerate(group.matches):
        if (same := first.setdefault(Shape.of(match), match)) is not match:
            field, wanted = f"spec.matches[{number}]", f"match {same.name} says the same; keep one of them"
            yield say(view, key, Code.DUPLICATE_MATCH, Severity.WARNING, field, match.name, wanted)


def _useless(view: View, key: ObjectKey, group: HTTPRouteGroup, budget: Budget) -> Iterator[Problem]:
    """Yield the matches that never fit, or not as they are meant."""
    for number, match in enumerate(group.matches):
        budget.spend(_READ + len(match.headers))
        if match.path_regex is not None and (wanted := _never_fits(match.path_regex)):
            field = f"spec.matches[{number}].pathRegex"
            yield say(view, key, Code.UNFIT_PATH, Severity.WARNING, field, match.path_regex, wanted)
        for header in match.headers:
            if header.name.lower() in _HOST and (wanted := never_sent(header.regex)):
                field = f"spec.matches[{number}].headers.{header.name}"
                yield say(view, key, Code.UNSENT_HOST, Severity.WARNING, field, header.regex, wanted)
            if wanted := _unseen(header, view.settings.long_lived.upgrades):
                field = f"spec.matches[{number}].headers"
                yield say(view, key, Code.UNSEEN_HEADER, Severity.WARNING, field, header.name, wanted)


def _unseen(header: HeaderMatch, upgrades: Iterable[str]) -> str:
    """Say why the server's sidecar does not see a header as the application sent it, empty if it does."""
    name = header.name.lower()
    if name in SET:
        return "is added by sidecars to requests without it"
    passes: dict[str, tuple[tuple[str, ...], str]] = {
        "te": (("trailers",), ", but for trailers"),
        "connection": (("upgrade", "keep-alive, upgrade"), ", but for an upgrade that passes"),
        "upgrade": (tuple(upgrades), f", but for {', '.join(upgrades)}"),
    }
    if name not in UNSEEN and name not in passes:
        return ""
    passing, beyond = passes.get(name, ((), ""))
    if any(fits_in_full(f"(?i){header.regex}", each.encode()) for each in passing):
        return ""
    return f"ends at the client's sidecar{beyond}, so this match never fits"


def _never_fits(regex: str) -> str:
    """Say why an expression surely fits no path, empty if it may: none begins so, or none arrives so."""
    if fits_no_path(regex):
        return "paths begin with /; this match never fits"
    text = text_of(regex)
    if text is None:
        return ""
    written = passed_on(text.encode(), EscapedSlashes.KEEP, http2=True)
    if isinstance(written, LocalReply):
        return "no sidecar passes on a path with this; this match never fits"
    path = written.path.decode()
    return "" if path == text else f"such a path arrives as {path}; this match never fits"


def of_target(view: View, target: TrafficTarget) -> Iterator[Problem]:
    """Yield the matches that add nothing to the others of one target, where they are not plainly equal."""
    if not in_force(target):
        return
    place = Place(view, ObjectKey.of(TRAFFIC_TARGET, target.key))
    named: list[tuple[int, str, HTTPMatch]] = [
        (number, f"{rule.name}/{match.name}", match)
        for number, rule in enumerate(target.rules)
        if rule.kind is RouteKind.HTTP
        for match in rule_matches(view, target.key.namespace, rule)
    ]
    covering = MatchIndex((name, match) for _, name, match in named)

    def shadowed(budget: Budget) -> Iterator[Problem]:
        for number, name, match in named:
            if (wider := covering.first(match, budget, wider=True)) is not None:
                wanted = f"match {wider} admits all that this one does; it has no effect here"
                yield place.problem(Code.SHADOWED_MATCH, Severity.INFO, f"spec.rules[{number}]", name, wanted)

    yield from within(place, "spec.rules", "matches without effect", shadowed)
