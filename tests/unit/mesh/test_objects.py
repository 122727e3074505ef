"""Keys of objects: what they are called, and what is another object."""

import itertools

from meshwright.mesh.kinds import MESH_CONFIG, SERVICE, TCP_ROUTE, TRAFFIC_TARGET, Kind
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from tests.meshes import values as a


def test_a_key_is_made_of_a_value_s_own() -> None:
    """The kind is said, the rest is in the value; it reads as kubectl has it, less the plural."""
    key = ObjectKey.of(SERVICE, a.service_key("store", "shop"))
    assert key == ObjectKey(SERVICE, Namespace("shop"), "store")
    assert (key.path, str(key)) == ("shop/store", "Service shop/store")


def test_what_is_of_no_namespace_is_told_by_its_name_alone() -> None:
    """A Namespace is in none."""
    key = ObjectKey.of_namespace("shop")
    assert (key.path, str(key), key.namespace) == ("shop", "Namespace shop", "")


def test_two_groups_have_two_objects_of_one_name() -> None:
    """Else the deletion of one would leave it in force for as long as the other is there."""
    ours = ObjectKey(TCP_ROUTE, Namespace("shop"), "db")
    theirs = ObjectKey(Kind("TCPRoute", "gateway.networking.k8s.io"), Namespace("shop"), "db")
    assert len({ours, theirs}) == 2
    assert (str(ours), str(theirs)) == (
        "TCPRoute shop/db",
        "TCPRoute.gateway.networking.k8s.io shop/db",
    )


def test_keys_are_sorted_by_kind_then_namespace_then_name() -> None:
    """The order of every list that people or programs see."""
    keys = [
        ObjectKey(kind, Namespace(space), name)
        for kind in (MESH_CONFIG, SERVICE, TRAFFIC_TARGET)
        for space in ("bank", "shop")
        for name in ("a", "b")
    ]
    assert all(former < latter for former, latter in itertools.pairwise(keys))
