"""Tests of group snapshots: computed once, kept when equal, and failing separately."""

from collections.abc import Callable, Iterable

import pytest

from catalog.relations.groups import groups
from catalog.store.view import View
from meshwright.delivery.snapshots.consistency import InconsistentSnapshot, consistent
from meshwright.delivery.snapshots.group_snapshots import GroupSnapshots, group_name
from meshwright.delivery.snapshots.published_snapshots import Failure, PublishedSnapshots
from meshwright.delivery.snapshots.rendering import GroupInput, Translate
from meshwright.sidecars.contract.driver import Piece
from xds.cache import GroupKey, NodeKey
from xds.protocol.resources.resource import CLUSTER, LISTENER, Resource, ResourceName, Version

Views = Callable[..., View]
Resources = Callable[[GroupInput], Iterable[Resource]]


def _resource(name: str, version: str = "1", needs: str = "") -> Resource:
    references = ((CLUSTER, ResourceName(needs)),) if needs else ()
    type_url = LISTENER if needs else CLUSTER
    return Resource(type_url, ResourceName(name), Version(version), b"", references)


def _named_after_identity(need: GroupInput) -> Iterable[Resource]:
    return (_resource(str(need.policy.identity)),)


def _pieces(translate: Resources) -> Translate:
    """Return a translation into one piece, which runs when the pieces are requested."""
    return lambda need: (Piece(tuple, (tuple(translate(need)),)),)


def _step(serving: GroupSnapshots, before: PublishedSnapshots, roots: bytes = b"ROOT") -> PublishedSnapshots:
    serving.rendering.certify({}, roots)
    (step,) = [item for item in serving.steps(before, serving.touched()) if item is not None]
    return step.after(before)


def _wave(
    view: View, before: PublishedSnapshots, translate: Resources, roots: bytes = b"ROOT"
) -> PublishedSnapshots:
    return _step(GroupSnapshots(view, _pieces(translate)), before, roots)


def _names(view: View) -> list[GroupKey]:
    return [group_name(group) for group in groups(view)]


def test_proxies_of_a_group_share_a_snapshot(view_of: Views) -> None:
    """Two proxies of one service are one group; the keys of members are common names."""
    view = view_of(("a", "store"), ("b", "store"), ("c", "other"))
    made = _wave(view, PublishedSnapshots(), _named_after_identity)
    store, other = _names(view)
    assert dict(made.members) == {"a.store.shop": store, "b.store.shop": store, "c.other.shop": other}
    assert sorted(made.snapshots) == sorted([store, other])
    assert made.failures == ()


def test_group_names_are_the_same_in_every_process_and_differ_by_group(view_of: Views) -> None:
    """A group's name depends on no property of the process such as its hash seed."""
    names = _names(view_of(("a", "store"), ("c", "other")))
    assert [name.rpartition("|")[0] for name in names] == ["shop/store|store", "shop/other|other"]
    assert names == _names(view_of(("a", "store"), ("c", "other")))


def test_unchanged_input_is_not_translated_again(view_of: Views) -> None:
    """The snapshot is the same object. Negative control: other roots are another input."""
    asked: list[GroupInput] = []

    def noted(need: GroupInput) -> Iterable[Resource]:
        asked.append(need)
        return _named_after_identity(need)

    view = view_of(("a", "store"))
    serving = GroupSnapshots(view, _pieces(noted))
    first = _step(serving, PublishedSnapshots())
    view.apply(view.edits_to(view_of(("a", "store")).known()))
    second = _step(serving, first)
    assert len(asked) == 1
    assert all(second.snapshots[name] is snapshot for name, snapshot in first.snapshots.items())
    _step(serving, second, b"OTHER")
    assert len(asked) == 2, "negative control: other roots are another need"


def test_equal_resources_give_the_previous_snapshot(view_of: Views) -> None:
    """Even after a computation from scratch no proxy is pushed anything."""
    first = _wave(view_of(("a", "store")), PublishedSnapshots(), _named_after_identity)
    second = _wave(view_of(("a", "store")), first, _named_after_identity, b"OTHER")
    assert all(second.snapshots[name] is snapshot for name, snapshot in first.snapshots.items())


def test_shared_piece_is_made_once_for_all_groups(view_of: Views) -> None:
    """Two groups share one piece, and each has one of its own."""

    def translate(need: GroupInput) -> Iterable[Piece]:
        return (Piece(_resource, ("shared",)), Piece(_resource, (str(need.policy.identity),)))

    serving = GroupSnapshots(view_of(("a", "store"), ("c", "other")), translate)
    made = _step(serving, PublishedSnapshots())
    assert serving.rendering.encoded == 3
    one, other = (snapshot.resources(CLUSTER)[ResourceName("shared")] for snapshot in made.snapshots.values())
    assert one is other


def test_failed_group_keeps_its_snapshot_and_others_change(view_of: Views) -> None:
    """The failure counts the group's proxies and those that keep a snapshot."""
    before = _wave(view_of(("a", "store"), ("c", "other")), PublishedSnapshots(), _named_after_identity)

    def fails_for_store(need: GroupInput) -> Iterable[Resource]:
        if need.policy.identity.service_account == "store":
            raise ValueError("broken")
        return (_resource("new"),)

    view = view_of(("a", "store"), ("c", "other"))
    after = _wave(view, before, fails_for_store, b"NEW")
    store, _ = _names(view)
    assert after.failures == (Failure(store, "ValueError: broken", 1, 1),)
    assert after.snapshots[after.members[_node("a.store.shop")]] is before.snapshot(_node("a.store.shop"))
    changed = after.snapshot(_node("c.other.shop"))
    assert changed is not None
    assert list(changed.resources(CLUSTER)) == ["new"]


def test_proxy_that_moved_to_a_failed_group_keeps_its_snapshot(view_of: Views) -> None:
    """The last good snapshot belongs to the proxy, not to the name of its group."""
    before = _wave(view_of(("a", "store")), PublishedSnapshots(), _named_after_identity)

    def fails(need: GroupInput) -> Iterable[Resource]:
        raise ValueError(str(need.policy.identity))

    source = view_of(("a", "store"), ("b", "store"))
    after = _wave(source, before, fails, b"NEW")
    assert after.snapshot(_node("a.store.shop")) is before.snapshot(_node("a.store.shop"))
    assert after.snapshot(_node("b.store.shop")) is None
    assert [(failure.proxies, failure.kept) for failure in after.failures] == [(2, 1)]


def test_proxy_without_a_workload_is_no_member(view_of: Views) -> None:
    """The cache therefore leaves its streams with their configuration."""
    before = _wave(view_of(("a", "store"), ("c", "other")), PublishedSnapshots(), _named_after_identity)
    after = _wave(view_of(("c", "other")), before, _named_after_identity)
    assert list(after.members) == ["c.other.shop"]


def test_reference_to_a_missing_resource_is_an_error_with_both_names() -> None:
    """The message has the first such reference and the number of further ones."""
    with pytest.raises(InconsistentSnapshot) as caught:
        consistent([_resource("l", needs="gone"), _resource("m", needs="gone"), _resource("c")])
    assert str(caught.value) == "l refers to Cluster gone, which does not exist (and 1 more)"


def test_snapshot_whose_references_exist_is_consistent() -> None:
    """Negative control: a reference to an existing resource raises no error."""
    assert consistent([_resource("l", needs="c"), _resource("c")]).missing() == ()


def _node(name: str) -> NodeKey:
    return NodeKey(name)
