"""Which namespaces are part of the mesh, and what people write to say so."""

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
def test_selectors_mean_what_they_mean_to_kubectl(
    text: str, fitting: list[dict[str, str]], others: list[dict[str, str]]
) -> None:
    """A label that is not there is not equal, and in no set."""
    wanted = selector(text)
    assert all(all(each.fits(labels) for each in wanted) for labels in fitting)
    assert not any(all(each.fits(labels) for each in wanted) for labels in others)


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
def test_a_selector_that_kubectl_would_refuse_is_refused(text: str) -> None:
    """With the part of it that is wrong, and what would be right."""
    with pytest.raises(
        ScopeError,
        match="must be a label selector in the form of kubectl, such as "
        "openservicemesh\\.io/monitored-by=osm, tier in \\(shop, stock\\), team!=test, mesh "
        "or !old",
    ):
        Scope.of(labels=text)


def test_a_name_that_is_no_namespace_is_refused() -> None:
    """By name."""
    with pytest.raises(ScopeError, match="'Shop' is not a namespace: must be 1 to 63 characters a-z"):
        Scope.of(("default", "Shop"))


def test_all_namespaces_are_in_the_mesh_if_nothing_is_said() -> None:
    """But those that OSM's users keep out of it, whatever the label's value."""
    everything = Scope.of()
    assert everything.has("shop", {}) and everything.has("shop", None)  # noqa: PT018
    assert not everything.has("kube-system", {"openservicemesh.io/ignore": "true"})


def test_a_list_and_a_selector_both_hold() -> None:
    """What is not known to have the labels is not in the mesh."""
    both = Scope.of(["shop", "books", "shop"], "openservicemesh.io/monitored-by=osm")
    assert both.namespaces == ("books", "shop")
    assert both.has("shop", MONITORED)
    assert not both.has("shop", {}) and not both.has("shop", None)  # noqa: PT018
    assert not both.has("other", MONITORED)
    listed = Scope.of(["shop"])
    assert listed.has("shop", None)
    assert not listed.has("other", None)
