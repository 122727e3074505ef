"""Problems of HTTP matches: said twice, without effect, or on headers that no rule sees as they were sent."""

import re
from collections.abc import Iterator
from itertools import combinations
from typing import Final

from catalog.access import in_force, rule_matches
from catalog.codes import Code
from catalog.headers import SET, UNSEEN
from catalog.saying import say
from catalog.view import View
from mesh.objects import ObjectKey, Problem, Severity
from mesh.policy import HTTPMatch, HTTPRouteGroup, RouteKind, TrafficTarget

_BEGINS_OTHERWISE: Final = re.compile(r"\^?[A-Za-z0-9_-](?![?*{])")


def covers(one: HTTPMatch, other: HTTPMatch) -> bool:
    """Say whether whatever fits `other` surely fits `one`; expressions are compared as they are written."""
    return (
        one.path_regex in (None, ".*", other.path_regex)
        and (not one.methods or (bool(other.methods) and set(other.methods) <= set(one.methods)))
        and set(one.headers) <= set(other.headers)
    )


def of_group(view: View, group: HTTPRouteGroup) -> Iterator[Problem]:
    """Yield the problems of an HTTPRouteGroup's matches."""
    key = ObjectKey("HTTPRouteGroup", group.key.namespace, group.key.name)
    for number, match in enumerate(group.matches):
        if _fits_no_path(match.path_regex or ""):
            field, wanted = f"spec.matches[{number}].pathRegex", "paths begin with /; this match never fits"
            yield say(view, key, Code.UNFIT_PATH, Severity.WARNING, field, match.path_regex or "", wanted)
        for header in match.headers:
            if header.name in UNSEEN | SET:
                ends = "ends at the client's sidecar, so this match never fits"
                wanted = ends if header.name in UNSEEN else "is set by sidecars where nobody sent it"
                field = f"spec.matches[{number}].headers"
                yield say(view, key, Code.UNSEEN_HEADER, Severity.WARNING, field, header.name, wanted)
    for (_, first), (number, second) in combinations(enumerate(group.matches), 2):
        if covers(first, second) and covers(second, first):
            field, wanted = f"spec.matches[{number}]", f"match {first.name} says the same; keep one of them"
            yield say(view, key, Code.DUPLICATE_MATCH, Severity.WARNING, field, second.name, wanted)


def _fits_no_path(regex: str) -> bool:
    """Say whether an expression surely fits no path: it begins with a letter or digit that must be there."""
    return _BEGINS_OTHERWISE.match(regex) is not None and "|" not in regex


def of_target(view: View, target: TrafficTarget) -> Iterator[Problem]:
    """Yield the matches that add nothing to the others of one target, where they are not plainly equal."""
    if not in_force(target):
        return
    key = ObjectKey("TrafficTarget", target.key.namespace, target.key.name)
    named: list[tuple[int, str, HTTPMatch]] = [
        (number, f"{rule.name}/{match.name}", match)
        for number, rule in enumerate(target.rules)
        if rule.kind is RouteKind.HTTP
        for match in rule_matches(view, target.key.namespace, rule)
    ]
    for number, name, match in named:
        wider = next(
            (other for _, other, each in named if covers(each, match) and not covers(match, each)), ""
        )
        if wider:
            wanted = f"match {wider} admits all that this one does; it has no effect here"
            field = f"spec.rules[{number}]"
            yield say(view, key, Code.SHADOWED_MATCH, Severity.INFO, field, name, wanted)
