"""Host names of listeners and routes (`hostnames` in gateway.networking.k8s.io, GEP-1742)."""

import pytest

from meshwright.mesh.gateway.hostnames import covering, covers, most_specific, narrower, shared, specificity


@pytest.mark.parametrize(
    ("pattern", "name", "is_covered"),
    [
        ("", "shop.example", True),
        ("", "*.example", True),
        ("shop.example", "shop.example", True),
        ("shop.example", "cart.shop.example", False),
        ("*.example", "shop.example", True),
        ("*.example", "a.b.example", True),  # any number of labels
        ("*.example", "example", False),
        ("*.example", "badexample", False),
        ("*.example", "*.shop.example", True),
        ("*.shop.example", "*.example", False),
        ("shop.example", "*.example", False),
        ("shop.example", "", False),
        ("*.example", "", False),
    ],
)
def test_pattern_covers_names_of_its_suffix(pattern: str, name: str, *, is_covered: bool) -> None:
    """A suffix stands for one or more labels before it."""
    assert covers(pattern, name) is is_covered


@pytest.mark.parametrize(
    ("listener", "hostnames", "served"),
    [
        ("", (), ("",)),
        ("shop.example", (), ("shop.example",)),
        ("", ("shop.example", "*.other.example"), ("*.other.example", "shop.example")),
        ("*.example", ("shop.example", "shop.test"), ("shop.example",)),
        ("shop.example", ("*.example",), ("shop.example",)),
        ("*.shop.example", ("*.example",), ("*.shop.example",)),
        ("very.specific.com", ("non.matching.com", "*.nonmatchingwildcard.io"), ()),
        ("*.wildcard.io", ("wildcard.io",), ()),
    ],
)
def test_listener_serves_the_names_that_both_sides_cover(
    listener: str, hostnames: tuple[str, ...], served: tuple[str, ...]
) -> None:
    """The examples of the specification."""
    assert shared(listener, hostnames) == served


def test_patterns_without_a_common_name_have_no_narrower_one() -> None:
    """The narrower of two is the one inside the other."""
    assert narrower("*.shop.example", "*.cart.example") is None
    assert narrower("*.example", "*.shop.example") == "*.shop.example"


def test_most_specific_pattern_is_exact_then_the_longest_suffix() -> None:
    """The order in which host names decide."""
    patterns = ("", "*.example", "*.shop.example", "cart.shop.example")
    assert most_specific(patterns, "cart.shop.example") == "cart.shop.example"
    assert most_specific(patterns, "x.shop.example") == "*.shop.example"
    assert most_specific(patterns, "a.b.example") == "*.example"
    assert most_specific(patterns, "elsewhere.test") == ""
    assert most_specific(("*.example",), "elsewhere.test") is None
    assert sorted(patterns, key=specificity) == [
        "cart.shop.example",
        "*.shop.example",
        "*.example",
        "",
    ]


@pytest.mark.parametrize(
    "name", ["", "a", "example", "shop.example", "*.shop.example", "a.b.shop.example", "*.a.b"]
)
def test_covering_patterns_are_those_that_cover_the_name_in_their_order(name: str) -> None:
    """The list equals a look at each of many patterns."""
    labels = ("a", "b", "example", "shop.example", "b.shop.example", "a.b.shop.example", "a.b")
    patterns = {"", *labels, *(f"*.{label}" for label in labels)}
    result = [pattern for pattern in covering(name) if pattern in patterns]
    assert result == sorted((item for item in patterns if covers(item, name)), key=specificity)
