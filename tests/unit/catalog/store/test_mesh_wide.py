"""Tests of a changed setting of the MeshConfig: only values that read this setting are computed."""

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
    """Return the number of values computed for all groups' policies after a change of the MeshConfig."""
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


def test_setting_that_no_policy_reads_computes_few_values() -> None:
    """The validity of certificates is in no policy, so the cost is independent of the mesh's size."""
    after = replace(BEFORE, service_certificate_validity=timedelta(hours=1))
    assert computed(20, after) == computed(12, after) <= FEW


def test_setting_of_each_policy_computes_one_value_for_each_group() -> None:
    """TLS is in each group's policy, but not in its ports and destinations."""
    after = replace(BEFORE, sidecar=SidecarSettings(tls_min_version=TlsVersion.V1_2))
    assert computed(20, after) - computed(12, after) == 8


def test_setting_of_each_port_computes_more_than_one_value_for_each_group() -> None:
    """Positive control: permissive mode is part of the access at each port."""
    after = replace(BEFORE, permissive=True)
    assert computed(20, after) - computed(12, after) > 8
