"""Differences between the expected and the seen outcome of a call, in words."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from tests.gateway.case_files import Call
from tests.gateway.client import CLOSED, Outcome
from tests.gateway.echo import Arrival

_DEVIATIONS: Final = 5
"""Standard deviations that a share may differ: a right share fails once in two million times."""


def differences(call: Call, outcome: Outcome, arrivals: list[Arrival]) -> tuple[str, ...]:
    """Return one text for each difference, with the expected and the seen value."""
    return tuple(
        f"{field} {expected!r} expected, {seen} seen"
        for field, expected in call.expected.items()
        for seen in _JUDGES[field](expected, call, outcome, arrivals)
    )


_Judge = Callable[[Any, Call, Outcome, list[Arrival]], Iterator[str]]


def _status(expected: Any, call: Call, outcome: Outcome, _: list[Arrival]) -> Iterator[str]:
    allowed = _allowed(expected)
    if outcome.last.status not in allowed:
        yield f"{outcome.last.status} {_from(outcome)}"
    if len(outcome.words) > 1:
        yield f"several outcomes {dict(outcome.words)}"


def _by(expected: str, call: Call, outcome: Outcome, _: list[Arrival]) -> Iterator[str]:
    if set(outcome.words) != {expected}:
        yield f"{dict(outcome.words)}"
    elif "status" not in call.expected and outcome.last.status != (0 if call.grpc else 200):
        yield f"status {outcome.last.status} of {expected}"


def _closed(expected: bool, call: Call, outcome: Outcome, _: list[Arrival]) -> Iterator[str]:
    if (set(outcome.words) == {CLOSED}) is not expected:
        yield f"{dict(outcome.words)}"


def _path(expected: Any, call: Call, outcome: Outcome, arrivals: list[Arrival]) -> Iterator[str]:
    yield from _arrived("path", expected, lambda arrival: arrival.path, _answering(outcome, arrivals))


def _paths(
    expected: Mapping[str, str], call: Call, outcome: Outcome, arrivals: list[Arrival]
) -> Iterator[str]:
    for backend, path in expected.items():
        there = [arrival for arrival in arrivals if arrival.backend == backend]
        yield from _arrived(f"path at {backend}", path, lambda arrival: arrival.path, there)


def _port(expected: int, call: Call, outcome: Outcome, _: list[Arrival]) -> Iterator[str]:
    if outcome.last.port != expected:
        yield f"{outcome.last.port}"


def _host(expected: str, call: Call, outcome: Outcome, arrivals: list[Arrival]) -> Iterator[str]:
    yield from _arrived("host", expected, lambda arrival: arrival.host, _answering(outcome, arrivals))


def _request_headers(
    expected: Mapping[str, Any], call: Call, outcome: Outcome, arrivals: list[Arrival]
) -> Iterator[str]:
    for arrival in _answering(outcome, arrivals)[-1:] or [Arrival("nobody", "", "", ())]:
        yield from _headers(expected, arrival.headers)


def _length(expected: int, call: Call, outcome: Outcome, arrivals: list[Arrival]) -> Iterator[str]:
    if seen := sorted({arrival.length for arrival in arrivals} - {expected}):
        yield f"{seen}"


def _response(expected: Mapping[str, Any], call: Call, outcome: Outcome, _: list[Arrival]) -> Iterator[str]:
    yield from _headers(expected, outcome.last.headers)


def _location(expected: Any, call: Call, outcome: Outcome, _: list[Arrival]) -> Iterator[str]:
    allowed = _allowed(expected)
    seen = dict(outcome.last.headers).get("location")
    if seen not in allowed:
        yield f"{seen!r} with status {outcome.last.status}"


def _shares(expected: Mapping[Any, float], call: Call, outcome: Outcome, _: list[Arrival]) -> Iterator[str]:
    known = {str(word): share for word, share in expected.items()}
    wrong = [word for word in known if not _fits(outcome.words[word], call.count, known[word])]
    if wrong or outcome.words.keys() - known.keys():
        yield f"{dict(outcome.words)}"


def _tries(expected: int, call: Call, outcome: Outcome, arrivals: list[Arrival]) -> Iterator[str]:
    if len(arrivals) != expected:
        yield f"{len(arrivals)} tries {_at(arrivals)}"


def _copies(
    expected: Mapping[str, Any], call: Call, outcome: Outcome, arrivals: list[Arrival]
) -> Iterator[str]:
    """Compare the mirrored requests that backends got: a share, or a mapping with more to compare."""
    for backend, wanted in expected.items():
        seen = [arrival for arrival in arrivals if arrival.backend == backend]
        more = wanted if isinstance(wanted, dict) else {"share": wanted}
        if not _fits(len(seen), call.count, more.get("share", 1)):
            yield f"{len(seen)} copies at {backend} of {call.count} requests"
        if "path" in more:
            yield from _arrived("path", more["path"], lambda arrival: arrival.path, seen)
        if "host" in more:
            yield from _arrived("host", more["host"], lambda arrival: arrival.host, seen)
        for arrival in seen[-1:]:
            yield from _headers(more.get("headers", {}), arrival.headers)


_JUDGES: Final[Mapping[str, _Judge]] = {
    "status": _status,
    "grpc": _status,
    "by": _by,
    "closed": _closed,
    "path": _path,
    "paths": _paths,
    "port": _port,
    "host": _host,
    "headers": _request_headers,
    "length": _length,
    "response": _response,
    "location": _location,
    "shares": _shares,
    "tries": _tries,
    "copies": _copies,
}


def enough_copies(call: Call, arrivals: list[Arrival]) -> bool:
    """Return whether every backend has at least as many copies as it must get."""
    seen = Counter(arrival.backend for arrival in arrivals)
    wanted = {
        backend: item.get("share", 1) if isinstance(item, dict) else item
        for backend, item in call.expected.get("copies", {}).items()
    }
    return all(
        seen[backend] >= share * call.count - _bound(call.count, share) for backend, share in wanted.items()
    )


def _fits(seen: int, count: int, share: float) -> bool:
    return abs(seen - share * count) <= _bound(count, share)


def _bound(count: int, share: float) -> float:
    """Return how far a number may be from its mean; 0 and 1 are certain."""
    return _DEVIATIONS * math.sqrt(count * share * (1 - share)) if 0 < share < 1 else 0


def _answering(outcome: Outcome, arrivals: list[Arrival]) -> list[Arrival]:
    return [arrival for arrival in arrivals if arrival.backend == outcome.last.by]


def _arrived(
    word: str, expected: Any, part: Callable[[Arrival], str], arrivals: list[Arrival]
) -> Iterator[str]:
    if not arrivals:
        yield f"no request with a {word}"
    elif seen := sorted({part(arrival) for arrival in arrivals} - set(_allowed(expected))):
        yield f"{word} {seen}"


def _headers(expected: Mapping[str, Any], seen: tuple[tuple[str, str], ...]) -> Iterator[str]:
    """Compare headers; None means that there must not be one. Lines of one name are joined by a comma."""
    for name, wanted in expected.items():
        values = [value for key, value in seen if key == name.lower()]
        joined = ",".join(part.strip() for value in values for part in value.split(",")) if values else None
        if joined not in [item if item is None else str(item) for item in _allowed(wanted)]:
            yield f"{name}: {joined}"


def _allowed(expected: Any) -> list[Any]:
    """Return the values that are right: those of a list, or the only one."""
    return expected if isinstance(expected, list) else [expected]


def _from(outcome: Outcome) -> str:
    return f"from {outcome.last.by}" if outcome.last.by else "from a sidecar"


def _at(arrivals: list[Arrival]) -> str:
    return str(dict(Counter(arrival.backend for arrival in arrivals)))
