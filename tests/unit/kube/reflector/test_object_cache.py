"""Tests of the object cache between lists and events, also with random histories."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshwright.kube.reflector.object_cache import (
    Changes,
    DisorderError,
    Item,
    ObjectCache,
    UnreadError,
    ends_list,
    later,
)
from meshwright.kube.resource import Raw, Resource
from tests.unit.kube.scripted_api import SERVICES, bookmark, service


def _spec(raw: Raw) -> Any:
    if "bad" in raw["spec"]:
        raise KeyError("ports")
    return dict(raw["spec"])


def _seen(*items: dict[str, Any], at: str = "1") -> ObjectCache[Any]:
    seen: ObjectCache[Any] = ObjectCache(SERVICES, _spec)
    listing = seen.begin()
    for item in items:
        listing.add(item)
    listing.complete(at)
    return seen


def _take(seen: ObjectCache[Any], kind: str, raw: dict[str, Any]) -> Changes[Any]:
    changes: Changes[Any] = {}
    seen.take(kind, raw, changes)
    return changes


def _versions(seen: ObjectCache[Any]) -> dict[str, str]:
    return {name: item.version for (_, name), item in seen.items.items()}


CART, CATS = ("shop", "cart"), ("shop", "cats")


def test_first_list_is_reported_completely_and_an_equal_one_not_at_all() -> None:
    """The cache has the version of the last list."""
    seen: ObjectCache[Any] = ObjectCache(SERVICES, _spec)
    for expected in ({CART: Item("3", {"a": 1}), CATS: Item("4", {})}, {}):
        listing = seen.begin()
        listing.add(service("cart", 3, a=1))
        listing.add(service("cats", 4))
        assert listing.complete("9") == expected
    assert seen.at == "9"


def test_relist_reports_removed_new_and_changed_objects() -> None:
    """An object with a new version and equal content is not reported, and its new version is known."""
    seen = _seen(service("cart", 1, a=1), service("cats", 2), service("dogs", 3))
    listing = seen.begin()
    listing.add(service("cart", 7, a=2))
    listing.add(service("cats", 8))  # a new version with equal content
    listing.add(service("owls", 6))
    assert listing.complete("9") == {
        ("shop", "dogs"): None,
        CART: Item("7", {"a": 2}),
        ("shop", "owls"): Item("6", {}),
    }
    assert _versions(seen) == {"cart": "7", "cats": "8", "owls": "6"}


def test_incomplete_list_has_no_effect() -> None:
    """The objects of a list count only after its completion."""
    seen = _seen(service("cart", 1))
    seen.begin().add(service("cats", 2))
    assert list(seen.items) == [CART]


def test_objects_of_an_earlier_run_are_compared_with_the_first_list() -> None:
    """Until then, the remembered objects are the cache's content."""
    seen: ObjectCache[Any] = ObjectCache(SERVICES, _spec, {CART: Item("1", {}), CATS: Item("2", {"old": 1})})
    assert list(seen.items) == [CART, CATS]
    listing = seen.begin()
    listing.add(service("cart", 1))
    assert listing.complete("5") == {CATS: None}


def test_object_with_a_known_version_is_not_read_again() -> None:
    """A relist without changes is cheap."""
    seen = _seen(service("cart", 1))
    listing = seen.begin()
    listing.add(service("cart", 1, bad=1))
    assert listing.complete("5") == {}


def test_each_kind_of_event_is_reported_as_its_change() -> None:
    """ADDED and MODIFIED give the new form, DELETED gives None."""
    seen = _seen(service("cart", 1))
    assert _take(seen, "ADDED", service("cats", 2)) == {CATS: Item("2", {})}
    assert _take(seen, "MODIFIED", service("cart", 3, a=1)) == {CART: Item("3", {"a": 1})}
    assert _take(seen, "DELETED", service("cart", 4, a=1)) == {CART: None}
    assert (list(seen.items), seen.at) == ([CATS], "4")


def test_equal_names_in_two_namespaces_are_two_objects() -> None:
    """The deletion of one leaves the other."""
    seen = _seen(service("cart", 1), service("cart", 2, namespace="zoo"))
    assert _take(seen, "DELETED", service("cart", 3, namespace="zoo")) == {("zoo", "cart"): None}
    assert list(seen.items) == [CART]


def test_last_event_of_an_object_in_a_batch_wins() -> None:
    """An added and then deleted object is reported as deleted."""
    seen, changes = _seen(at="1"), Changes[Any]()
    seen.take("ADDED", service("cart", 2), changes)
    seen.take("DELETED", service("cart", 3), changes)
    assert changes == {CART: None}


def test_event_with_equal_content_is_not_reported() -> None:
    """Only the new version is stored."""
    seen = _seen(service("cart", 1, a=1))
    assert _take(seen, "MODIFIED", service("cart", 5, a=1)) == {}
    assert seen.items[CART].version == "5"


def test_unknown_object_can_be_deleted_or_modified() -> None:
    """The deletion is ignored, and the modification is reported as a new object."""
    seen = _seen()
    assert _take(seen, "DELETED", service("cart", 3)) == {}
    assert _take(seen, "MODIFIED", service("cats", 4)) == {CATS: Item("4", {})}


def test_duplicate_event_reports_no_change() -> None:
    """The version is already known."""
    seen = _seen()
    _take(seen, "ADDED", service("cart", 3))
    assert _take(seen, "ADDED", service("cart", 3)) == {}


@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED", "DELETED"])
def test_event_older_than_the_last_one_is_refused(kind: str) -> None:
    """A removed object must not return by an old event."""
    seen = _seen(service("cart", 1))
    _take(seen, "DELETED", service("cart", 30))
    with pytest.raises(
        DisorderError,
        match=r"services shop/cart has version 29, which is not newer than version 30 of the last event",
    ):
        _take(seen, kind, service("cart", 29))
    assert not seen.items


def test_bookmark_advances_the_version_and_never_lowers_it() -> None:
    """A malformed bookmark is ignored."""
    seen = _seen(at="10")
    seen.bookmark(bookmark(12)["object"])
    assert seen.at == "12"
    for nonsense in ({}, {"metadata": 1}, {"metadata": {"resourceVersion": 20}}, bookmark(11)["object"]):
        seen.bookmark(nonsense)
    assert seen.at == "12"


def test_only_the_annotated_bookmark_ends_a_streaming_list() -> None:
    """The annotation is `k8s.io/initial-events-end`."""
    assert ends_list(bookmark(7, end=True)["object"]) == "7"
    assert ends_list(bookmark(7)["object"]) is None
    assert ends_list({"metadata": {"annotations": [], "resourceVersion": "7"}}) is None


BAD = [
    (["x"], "services: an object lacks metadata"),
    ({}, "services: an object lacks metadata"),
    ({"metadata": {"namespace": "shop", "resourceVersion": "5"}}, "services: an object lacks a name"),
    (
        {"metadata": {"name": 5, "namespace": "shop", "resourceVersion": "5"}},
        "services: an object lacks a name",
    ),
    ({"metadata": {"name": "cart", "resourceVersion": "5"}}, "services cart has no namespace"),
    ({"metadata": {"name": "cart", "namespace": "shop"}}, "services shop/cart lacks a resourceVersion"),
    (service("cart", 5) | {"kind": "Pod"}, "services shop/cart has the kind 'Pod'"),
    (service("cart", 5, bad=1), "services shop/cart: KeyError: 'ports'"),
]


@pytest.mark.parametrize(("raw", "said"), BAD)
def test_unreadable_object_is_an_error_with_its_name(raw: Any, said: str) -> None:
    """The object is omitted, from an event and from a list."""
    seen = _seen()
    with pytest.raises(UnreadError) as caught:
        _take(seen, "ADDED", raw)
    assert str(caught.value) == said
    with pytest.raises(UnreadError) as caught:
        seen.begin().add(raw)
    assert str(caught.value) == said
    assert not seen.items


def test_cluster_scoped_kind_has_no_namespaces() -> None:
    """An object of such a kind with a namespace is refused."""
    resource = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
    namespaces: ObjectCache[Any] = ObjectCache(resource, lambda raw: raw["kind"])
    listing = namespaces.begin()
    listing.add({"metadata": {"name": "shop", "resourceVersion": "1"}})
    assert listing.complete("1") == {("", "shop"): Item("1", "Namespace")}
    with pytest.raises(UnreadError, match="namespaces zoo/shop has the namespace zoo"):
        namespaces.begin().add({"metadata": {"name": "shop", "namespace": "zoo", "resourceVersion": "2"}})


def test_object_with_an_unreadable_new_form_keeps_its_last_form() -> None:
    """The rule holds after an event and after a list."""
    seen = _seen(service("cart", 1, a=1))
    with pytest.raises(UnreadError):
        _take(seen, "MODIFIED", service("cart", 2, bad=1))
    listing = seen.begin()
    with pytest.raises(UnreadError):
        listing.add(service("cart", 2, bad=1))
    assert listing.complete("9") == {}
    assert seen.items == {CART: Item("1", {"a": 1})}


@pytest.mark.parametrize(
    ("version", "other", "is_later"),
    [("10", "9", True), ("9", "10", False), ("9", "9", False), ("99999999999999999999", "9", True),
     ("b", "a", True), ("a", "b", True), ("09", "10", True), ("5", "0x9", True), ("٣", "9", True)],
)  # fmt: skip
def test_versions_are_compared_as_integers(version: str, other: str, is_later: bool) -> None:
    """A version that is no integer counts as later than any other."""
    assert later(version, other) is is_later


_NAMES = st.sampled_from(["cart", "cats", "dogs"])


@given(
    st.lists(st.tuples(_NAMES, st.sampled_from(["put", "gone", "relist"]), st.integers(0, 2)), max_size=30)
)
def test_reported_changes_lead_to_the_servers_objects(steps: list[tuple[str, str, int]]) -> None:
    """For random and missed events, the changes rebuild the server's state.

    Every reported form is new.
    """
    server: dict[str, tuple[int, int]] = {}
    items: dict[Any, Item[Any]] = {}
    seen = _seen(at="1")
    for number, (name, step, content) in enumerate(steps, start=2):
        changes: Changes[Any] = {}
        if step == "put":
            kind = "MODIFIED" if name in server else "ADDED"
            server[name] = number, content
            seen.take(kind, service(name, number, a=content), changes)
        elif step == "gone":
            server.pop(name, None)
            seen.take("DELETED", service(name, number), changes)
        else:  # a break: this change was missed, and the list is read again
            server[name] = number, content
            listing = seen.begin()
            for element, (version, a) in server.items():
                listing.add(service(element, version, a=a))
            changes = listing.complete(str(number))
        for key, item in changes.items():
            assert items.get(key) != item, "what is told is other"
            items.pop(key, None)
            if item is not None:
                items[key] = item
        has = {("shop", name): content for name, (_, content) in server.items()}
        assert {key: item.body["a"] for key, item in items.items()} == has
    assert _versions(seen) == {name: str(version) for name, (version, _) in server.items()}
