"""Tests of the page of access against the oracle of requests."""

from typing import Any

import pytest

from catalog.oracle.decide import Request, decide
from catalog.store.view import MeshSettings, View
from meshwright.admin.pages.access import access_pairs
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Namespace, Port, ServiceAccountName, ServiceName
from meshwright.mesh.service import ServiceKey
from meshwright.providers.directory.source import DirectorySource

SPLIT = """
apiVersion: v1
kind: Service
metadata: {name: apex, namespace: shop}
spec: {ports: [{name: http, port: 80, targetPort: 8080}]}
---
apiVersion: split.smi-spec.io/v1alpha2
kind: TrafficSplit
metadata: {name: split, namespace: shop}
spec: {service: apex, backends: [{service: store, weight: 1}]}
"""
PERMISSIVE = """
apiVersion: config.openservicemesh.io/v1alpha2
kind: MeshConfig
metadata: {name: osm-mesh-config, namespace: osm-system}
spec: {traffic: {enablePermissiveTrafficPolicyMode: true}}
"""
SAMPLES: tuple[tuple[str, str, tuple[tuple[str, str], ...]], ...] = (
    ("GET", "/buy", ()),
    ("GET", "/other", (("x-kind", "big"),)),
    ("GET", "/other", ()),
)


def _oracle(view: View, pair: dict[str, Any]) -> bool:
    namespace, account = pair["source"].split("/")
    source = ServiceIdentity(Namespace(namespace), ServiceAccountName(account))
    namespace, name = pair["destination_service"].split("/")
    service = ServiceKey(Namespace(namespace), ServiceName(name))
    requests = (Request(source, service, Port(pair["port"]), *sample) for sample in SAMPLES)
    return any(decide(view, request).allowed for request in requests)


@pytest.mark.parametrize(
    ("more", "allowed"),
    [
        ("", {("shop/buyer", "shop/store", 80)}),
        (SPLIT, {("shop/buyer", "shop/store", 80), ("shop/buyer", "shop/apex", 80)}),
        (
            PERMISSIVE,
            {(source, "shop/store", port) for source in ("shop/buyer", "shop/store") for port in (80, 90)},
        ),
    ],
    ids=["targets", "split", "permissive"],
)
def test_access_page_agrees_with_the_oracle(
    source: DirectorySource, more: str, allowed: set[tuple[str, str, int]]
) -> None:
    """For every pair, the page agrees with the oracle on requests that match each rule.

    The allowed pairs are also the expected ones.
    """
    (source._path / "more.yaml").write_text(more)
    source.load()
    assert not [problem for problem in source.problems() if problem.severity == "error"]
    view = View.build(source.objects(), MeshSettings())
    pairs: Any = access_pairs(view)
    assert {
        (pair["source"], pair["destination_service"], pair["port"]) for pair in pairs if pair["allowed"]
    } == allowed
    assert [pair["allowed"] for pair in pairs] == [_oracle(view, pair) for pair in pairs]


def test_access_in_a_permissive_mesh_is_by_the_mesh_config(source: DirectorySource) -> None:
    """In permissive mode access is granted by the MeshConfig, because TrafficTargets are not applied."""
    (source._path / "more.yaml").write_text(PERMISSIVE)
    source.load()
    pairs: Any = access_pairs(View.build(source.objects(), MeshSettings()))
    assert {tuple(pair["by"]) for pair in pairs} == {("MeshConfig (permissive)",)}
    assert {tuple(pair["requests"] or ()) for pair in pairs} == {("* *",), ()}
