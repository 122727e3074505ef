"""Host names of listeners and routes, as the Gateway API compares them.

A pattern is an exact name (`shop.example`), a suffix (`*.shop.example`), or empty for all names. `*.` stands
for one or more labels, so `*.example` covers `a.b.example`, and not `example`.
"""

from collections.abc import Iterable, Iterator

_WILDCARD = "*."


def covers(pattern: str, name: str) -> bool:
    """Return whether a pattern covers a name, or all names of another pattern."""
    if not pattern or pattern == name:
        return True
    return pattern.startswith(_WILDCARD) and name.endswith(pattern[1:])


def narrower(first: str, second: str) -> str | None:
    """Return the pattern for the names that both patterns cover; None if there are no such names."""
    if covers(first, second):
        return second
    return first if covers(second, first) else None


def shared(listener: str, hostnames: Iterable[str]) -> tuple[str, ...]:
    """Return the patterns under which a listener serves a route with these host names, sorted.

    A route without host names has those of the listener.
    """
    found = (narrower(listener, hostname) for hostname in tuple(hostnames) or ("",))
    return tuple(sorted({pattern for pattern in found if pattern is not None}))


def specificity(pattern: str) -> tuple[int, int, str]:
    """Return a sort key, most specific first: exact names, then longer suffixes, then all names."""
    rank = 2 if not pattern else 1 if pattern.startswith(_WILDCARD) else 0
    return rank, -len(pattern), pattern


def covering(name: str) -> Iterator[str]:
    """Yield all patterns that cover a name, or all names of a pattern, the most specific first."""
    yield name
    rest = name.removeprefix(_WILDCARD) if name.startswith(_WILDCARD) else name
    # The suffix of a wildcard itself is already yielded, and that of a name begins after its first label.
    while "." in rest:
        rest = rest.partition(".")[2]
        yield f"{_WILDCARD}{rest}"
    if name:
        yield ""


def most_specific(patterns: Iterable[str], name: str) -> str | None:
    """Return the most specific of the patterns that cover a name or pattern; None if none does."""
    return min((pattern for pattern in patterns if covers(pattern, name)), key=specificity, default=None)
