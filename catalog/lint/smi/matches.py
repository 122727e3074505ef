"""Problems of HTTP matches: duplicates, matches without effect, and headers changed by sidecars."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

from catalog.lint.budget import Budget, within
from catalog.lint.codes import Code
from catalog.lint.smi.hosts import never_sent
from catalog.lint.smi.match_coverage import MatchIndex, Shape
from catalog.lint.wording import Place, problem_of
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
"""Steps of the budget for one path expression, because the expression is compiled."""


def of_group(view: View, group: HTTPRouteGroup) -> Iterator[Problem]:
    """Yield the problems of an HTTPRouteGroup's matches."""
    key = ObjectKey.from_name(HTTP_ROUTE_GROUP, group.key)
    place = Place(view, key)
    yield from within(place, "spec.matches", "matches that never fit", partial(_useless, view, key, group))
    first: dict[Shape, HTTPMatch] = {}
    for number, match in enumerate(group.matches):
        if (same := first.setdefault(Shape.from_match(match), match)) is not match:
            field, wanted = (
                f"spec.matches[{number}]",
                f"Match {same.name} is the same but for its name. Delete one of the two.",
            )
            yield problem_of(view, key, Code.DUPLICATE_MATCH, Severity.WARNING, field, match.name, wanted)


def _useless(view: View, key: ObjectKey, group: HTTPRouteGroup, budget: Budget) -> Iterator[Problem]:
    """Yield a problem for each match that never fits, or fits other requests than intended."""
    for number, match in enumerate(group.matches):
        budget.spend(_READ + len(match.headers))
        if match.path_regex is not None and (wanted := _never_fits(match.path_regex)):
            field = f"spec.matches[{number}].pathRegex"
            yield problem_of(view, key, Code.UNFIT_PATH, Severity.WARNING, field, match.path_regex, wanted)
        for header in match.headers:
            if header.name.lower() in _HOST and (wanted := never_sent(header.regex)):
                field = f"spec.matches[{number}].headers.{header.name}"
                yield problem_of(view, key, Code.UNSENT_HOST, Severity.WARNING, field, header.regex, wanted)
            if wanted := _unseen(header, view.settings.long_lived.upgrades):
                field = f"spec.matches[{number}].headers"
                yield problem_of(view, key, Code.UNSEEN_HEADER, Severity.WARNING, field, header.name, wanted)


def _unseen(header: HeaderMatch, upgrades: Iterable[str]) -> str:
    """Return why the server's sidecar does not see a header as sent by the client, or an empty text."""
    name = header.name.lower()
    if name in SET:
        return (
            "Sidecars add this header to requests without it, so the match may fit requests "
            "whose client did not send the header. Match another header."
        )
    passes: dict[str, tuple[tuple[str, ...], str]] = {
        "te": (("trailers",), " (except for the value trailers)"),
        "connection": (("upgrade", "keep-alive, upgrade"), " (except for an upgrade that sidecars pass on)"),
        "upgrade": (tuple(upgrades), f" (except for {', '.join(upgrades)})"),
    }
    if name not in UNSEEN and name not in passes:
        return ""
    passing, beyond = passes.get(name, ((), ""))
    if any(fits_in_full(f"(?i){header.regex}", item.encode()) for item in passing):
        return ""
    return (
        f"The client's sidecar removes this header{beyond}, so this match never fits. Match another header."
    )


def _never_fits(regex: str) -> str:
    """Return why a regular expression never fits a path, or an empty text."""
    if fits_no_path(regex):
        return "Every path begins with /, so this match never fits. Begin the expression with /."
    text = text_of(regex)
    if text is None:
        return ""
    written = passed_on(text.encode(), EscapedSlashes.KEEP, http2=True)
    if isinstance(written, LocalReply):
        return "Sidecars refuse requests with such a path, so this match never fits. Correct the expression."
    path = written.path.decode()
    return (
        ""
        if path == text
        else (
            f"Sidecars change such a path to {path}, so this match never fits. Write the path in this form."
        )
    )


def of_target(view: View, target: TrafficTarget) -> Iterator[Problem]:
    """Yield the matches of a TrafficTarget covered by a wider match; equal matches do not count."""
    if not in_force(target):
        return
    place = Place(view, ObjectKey.from_name(TRAFFIC_TARGET, target.key))
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
                wanted = (
                    f"Match {wider} admits every request that this match admits, so this match is redundant "
                    "here. Remove this match from the rules."
                )
                yield place.problem(Code.SHADOWED_MATCH, Severity.INFO, f"spec.rules[{number}]", name, wanted)

    yield from within(place, "spec.rules", "matches without effect", shadowed)
