"""Tests of object keys: their text, order and equality."""

import itertools

from meshwright.mesh.kinds import MESH_CONFIG, SERVICE, TCP_ROUTE, TRAFFIC_TARGET, Kind
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from tests.meshes import values as a


def test_object_key_is_made_from_the_key_of_a_value() -> None:
    """The text has the form of kubectl, with the kind in the singular."""
    key = ObjectKey.from_name(SERVICE, a.service_key("store", "shop"))
    assert key == ObjectKey(SERVICE, Namespace("shop"), "store")
    assert (key.path, str(key)) == ("shop/store", "Service shop/store")


def test_key_of_a_namespace_is_printed_without_a_namespace() -> None:
    """A Namespace belongs to no namespace."""
    key = ObjectKey.of_namespace("shop")
    assert (key.path, str(key), key.namespace) == ("shop", "Namespace shop", "")


def test_keys_of_the_same_name_in_two_groups_differ() -> None:
    """Otherwise the deletion of one object would have no effect while the other exists."""
    ours = ObjectKey(TCP_ROUTE, Namespace("shop"), "db")
    theirs = ObjectKey(Kind("TCPRoute", "gateway.networking.k8s.io"), Namespace("shop"), "db")
    assert len({ours, theirs}) == 2
    assert (str(ours), str(theirs)) == (
        "TCPRoute shop/db",
        "TCPRoute.gateway.networking.k8s.io shop/db",
    )


def test_keys_are_sorted_by_kind_then_namespace_then_name() -> None:
    """All lists for users and programs have this order."""
    keys = [
        ObjectKey(kind, Namespace(space), name)
        for kind in (MESH_CONFIG, SERVICE, TRAFFIC_TARGET)
        for space in ("bank", "shop")
        for name in ("a", "b")
    ]
    assert all(former < latter for former, latter in itertools.pairwise(keys))
