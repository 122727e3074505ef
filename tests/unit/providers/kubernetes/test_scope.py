"""Tests of the mesh's scope: lists of namespaces and label selectors."""

import pytest

from meshwright.providers.kubernetes.scope import Scope, ScopeError, selector

MONITORED = {"openservicemesh.io/monitored-by": "osm"}


@pytest.mark.parametrize(
    ("text", "fitting", "others"),
    [
        ("", [{}, {"a": "b"}], []),
        ("openservicemesh.io/monitored-by=osm", [MONITORED], [{}, {"openservicemesh.io/monitored-by": "x"}]),
        ("a==b", [{"a": "b"}], [{"a": "c"}, {}]),
        ("a = b", [{"a": "b"}], [{}]),
        ("a=", [{"a": ""}], [{"a": "b"}, {}]),
        ("a!=b", [{"a": "c"}, {}], [{"a": "b"}]),
        ("a", [{"a": ""}, {"a": "b"}], [{}]),
        ("!a", [{}, {"b": "a"}], [{"a": ""}]),
        ("a in (b, c)", [{"a": "b"}, {"a": "c"}], [{"a": "d"}, {}]),
        ("a notin (b,c)", [{"a": "d"}, {}], [{"a": "b"}]),
        ("a in (b,c),!d , e=f", [{"a": "c", "e": "f"}], [{"a": "c", "e": "f", "d": ""}, {"a": "c"}]),
    ],
)
def test_selector_has_the_meaning_of_kubectl(
    text: str, fitting: list[dict[str, str]], others: list[dict[str, str]]
) -> None:
    """A missing label is not equal to any value, and is in no set."""
    wanted = selector(text)
    assert all(all(requirement.fits(labels) for requirement in wanted) for labels in fitting)
    assert not any(all(requirement.fits(labels) for requirement in wanted) for labels in others)


@pytest.mark.parametrize(
    "text",
    [
        "a=b=c",
        "a in b",
        "a in (b",
        "=b",
        "a,,b",
        "a>1",
        "a in (b c)",
        "-a",
        "a/b/c",
        "x" * 64,
        f"a={'x' * 64}",
        ",",
    ],
)
def test_invalid_selector_is_refused_with_examples(text: str) -> None:
    """The message describes the form of kubectl, with examples."""
    with pytest.raises(
        ScopeError,
        match="must be a label selector in the form of kubectl, for example "
        "openservicemesh\\.io/monitored-by=osm, tier in \\(shop, stock\\), team!=test, mesh "
        "or !old",
    ):
        Scope.from_settings(labels=text)


def test_invalid_namespace_name_is_refused() -> None:
    """The message names the invalid namespace."""
    with pytest.raises(ScopeError, match="'Shop' is not a namespace: must be 1 to 63 characters a-z"):
        Scope.from_settings(("default", "Shop"))


def test_default_scope_includes_all_namespaces_except_ignored_ones() -> None:
    """A namespace with OSM's label `openservicemesh.io/ignore` is excluded."""
    everything = Scope.from_settings()
    assert everything.has("shop", {}) and everything.has("shop", None)  # noqa: PT018
    assert not everything.has("kube-system", {"openservicemesh.io/ignore": "true"})


def test_list_and_selector_must_both_match() -> None:
    """A namespace with unknown labels does not match a selector."""
    both = Scope.from_settings(["shop", "books", "shop"], "openservicemesh.io/monitored-by=osm")
    assert both.namespaces == ("books", "shop")
    assert both.has("shop", MONITORED)
    assert not both.has("shop", {}) and not both.has("shop", None)  # noqa: PT018
    assert not both.has("other", MONITORED)
    listed = Scope.from_settings(["shop"])
    assert listed.has("shop", None)
    assert not listed.has("other", None)
