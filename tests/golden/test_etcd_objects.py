"""The golden cases through etcd: the same manifests, one in each key, give the same resources."""

import pytest

from catalog.policy.group_policy import proxy_policy
from catalog.relations.groups import groups
from catalog.store.inventory import by_sidecar
from catalog.store.view import MeshSettings, View
from meshwright.cli.objects.inputs import inputs
from meshwright.etcd.values import KeyValue
from meshwright.providers.etcd.book import EtcdObjects
from meshwright.providers.etcd.names import ObjectNames
from meshwright.specs.reader import key_meant
from tests.golden.cases import CASES, HERE, case_groups
from tests.meshes.resources import resources

NAMES = ObjectNames("cluster.local")


def stored(case: str) -> list[KeyValue]:
    """Return the keys after `meshwright apply -f mesh.yaml`."""
    items = []
    for number, given in enumerate(inputs(HERE / case / "mesh.yaml"), 2):
        key = key_meant(given.value)
        assert key is not None
        items.append(KeyValue(NAMES.name_of(key), given.content, number, number))
    return items


@pytest.mark.parametrize("case", CASES)
def test_objects_in_etcd_give_the_same_resources_as_files(case: str) -> None:
    """Not a byte differs, for each group of proxies."""
    objects = EtcdObjects().taken(NAMES, stored(case), ())
    assert objects.problems() == ()
    mesh = View.build(objects.objects(), MeshSettings())
    found = {}
    for key, proxies in groups(mesh).items():
        first = min(by_sidecar(mesh)[proxy.sidecar][0] for proxy in proxies)
        found[f"{first.namespace}.{first.name}"] = resources(proxy_policy(mesh, key))
    assert found == {group.name: group.resources for group in case_groups(case)}
