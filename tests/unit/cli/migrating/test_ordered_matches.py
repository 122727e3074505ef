"""Matches in an order that the Gateway API keeps, against a judge that sorts as the specification says."""

import re
from itertools import product

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from meshwright.cli.migrating.gateway_api.ordered_matches import (
    Decision,
    OrderError,
    in_gateway_form,
    ordered,
)
from meshwright.mesh.matching import Exact, FieldMatch, Regex, RequestMatch

METHODS = ("GET", "POST")
PATHS = ("/a", "/b", "/ab")
VALUES = ("", "1", "2")

Request = tuple[str, str, str, str]
REQUESTS = tuple(product(METHODS, PATHS, VALUES, VALUES))

_header_sets = st.tuples(*(st.sampled_from((None, "1", "2", ".*", "[12]")) for _ in range(2)))
_matches = st.builds(
    lambda path, method, headers: _match(path, method, *headers),
    st.sampled_from((None, "/a", "/b", "/a.*", "/.*")),
    st.sampled_from((None, *METHODS)),
    _header_sets,
)


def _match(path: str | None, method: str | None, first: str | None, second: str | None) -> RequestMatch:
    headers = tuple(
        FieldMatch(name, Regex(regex)) for name, regex in (("x", first), ("y", second)) if regex is not None
    )
    made = RequestMatch(None if path is None else Regex(path), (method,) if method else (), headers)
    return in_gateway_form(made)


def _fits(match: RequestMatch, request: Request) -> bool:
    method, path, first, second = request
    sent = {"x": first, "y": second}
    if match.methods and method not in match.methods:
        return False
    if isinstance(match.path, Exact | Regex) and not _is(match.path, path):
        return False
    return all(sent[name] and _is(value, sent[name]) for name, value in _values(match))


def _values(match: RequestMatch) -> list[tuple[str, Exact | Regex]]:
    return [(header.name, header.value) for header in match.headers]


def _is(wanted: Exact | Regex, text: str) -> bool:
    return text == wanted.text if isinstance(wanted, Exact) else bool(re.fullmatch(wanted.regex, text))


def _rank(match: RequestMatch) -> int:
    return 0 if isinstance(match.path, Exact) else 2 if match.path is None else 1


def _by_gateway_api(decided: tuple[Decision[int], ...], request: Request) -> int | None:
    """Answer as the specification: a given path, a given method, most headers, then order in the route."""
    fitting = [
        (_rank(match), not match.methods, -len(match.headers), number)
        for number, match in enumerate(item.match for item in decided)
        if _fits(match, request)
    ]
    return decided[min(fitting)[-1]].action if fitting else None


@given(st.lists(_matches, max_size=5))
def test_every_request_is_decided_as_before(matches: list[RequestMatch]) -> None:
    """Any decisions that can be ordered decide each request as before."""
    decisions = [Decision(match, number) for number, match in enumerate(matches)]
    try:
        result = ordered(decisions)
    except OrderError:
        reject()
    for request in REQUESTS:
        first = next((item.action for item in decisions if _fits(item.match, request)), None)
        assert _by_gateway_api(result, request) == first


def test_judge_finds_a_wrong_order() -> None:
    """The judge of these tests sees the difference between the given order and the result."""
    decisions = (Decision(_match(None, None, "1", None), 0), Decision(_match(None, "GET", None, None), 1))
    assert _by_gateway_api(decisions, ("GET", "/a", "1", "")) == 1
    assert _by_gateway_api(ordered(decisions), ("GET", "/a", "1", "")) == 0


def test_request_of_two_matches_gets_a_match_with_both() -> None:
    """An earlier match keeps the requests that a more specific one would take."""
    beta, get = _match(None, None, "1", None), _match(None, "GET", None, None)
    both = _match(None, "GET", "1", None)
    assert ordered((Decision(beta, "beta"), Decision(get, "stable"))) == (
        Decision(both, "beta"),
        Decision(get, "stable"),
        Decision(beta, "beta"),
    )


def test_equal_actions_need_no_order() -> None:
    """Matches with one action get no further match."""
    beta, get = _match(None, None, "1", None), _match(None, "GET", None, None)
    assert ordered((Decision(beta, "b"), Decision(get, "b"))) == (Decision(get, "b"), Decision(beta, "b"))


def test_literal_paths_of_which_none_fits_the_other_need_no_match() -> None:
    """No request fits two different literal paths."""
    one, other = _match("/a", None, None, None), _match("/b", "GET", None, None)
    assert ordered((Decision(one, 1), Decision(other, 2))) == (Decision(other, 2), Decision(one, 1))


def test_two_expressions_for_one_path_are_refused() -> None:
    """A request that must fit two expressions cannot be described."""
    one, other = _match("/a.*", None, None, None), _match("/[ab]+", "GET", None, None)
    with pytest.raises(OrderError) as refused:
        ordered((Decision(one, 1), Decision(other, 2)))
    assert refused.value.reason == (
        "a match of the path with '/a.*' comes before a more specific one with '/[ab]+', and no match of the "
        "Gateway API requires both"
    )


def test_too_many_matches_are_refused() -> None:
    """A route has at most 128 matches."""
    decisions = [Decision(_match(f"/{number}", None, None, None), number) for number in range(129)]
    with pytest.raises(OrderError, match="more than 128 matches"):
        ordered(decisions)
