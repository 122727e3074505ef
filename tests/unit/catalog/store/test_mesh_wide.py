"""A setting of the MeshConfig that changes concerns those alone who read that one."""

from dataclasses import replace
from datetime import timedelta

from benchmarks.meshes import generator as meshes
from catalog.policy.group_policy import outline
from catalog.policy.values.proxy import ProxyPolicy
from catalog.relations.groups import ProxyGroup, members
from catalog.store.edits import Edits
from catalog.store.settings import MeshSettings
from catalog.store.view import View
from meshwright.engine.derived import ObservedValues
from meshwright.mesh.config import MeshConfig, SidecarSettings, TlsVersion
from tests.meshes import values as a

BEFORE = MeshConfig(sidecar=SidecarSettings(tls_min_version=TlsVersion.V1_3))
FEW = 7
"""The MeshConfig itself, and each of its settings that are read."""


def computed(services: int, after: MeshConfig) -> int:
    """Return how many values are computed again of all groups' policies when a setting is another one."""
    view = View.build({**meshes.mesh(services).objects, **a.objects(BEFORE)}, MeshSettings())
    policies: ObservedValues[ProxyGroup, ProxyPolicy] = ObservedValues(outline, view)
    groups = list(members(view))
    for group in groups:
        policies.add(group)
        policies.value(group)
    before = view.graph.computed
    view.apply(Edits(a.objects(after)))
    for group in groups:
        policies.value(group)
    return view.graph.computed - before


def test_what_no_policy_reads_is_nobodys_work() -> None:
    """How long certificates are valid is in no policy, however large the mesh is."""
    after = replace(BEFORE, service_certificate_validity=timedelta(hours=1))
    assert computed(20, after) == computed(12, after) <= FEW


def test_what_each_policy_reads_is_one_value_for_each() -> None:
    """TLS is in each group's policy, but in no port's and in no destination's."""
    after = replace(BEFORE, sidecar=SidecarSettings(tls_min_version=TlsVersion.V1_2))
    assert computed(20, after) - computed(12, after) == 8


def test_what_each_port_reads_is_computed_for_each() -> None:
    """The control: permissive mode is in each port's admission, and more."""
    after = replace(BEFORE, permissive=True)
    assert computed(20, after) - computed(12, after) > 8
