"""What is served after any history is what the same inputs come to from nothing, byte for byte."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.outbound import visible
from incremental.derived import Pin
from incremental.graph import Graph
from incremental.index import Entries
from incremental.node import Derivation, Node
from incremental.table import Table
from tests.unit.catalog import build
from tests.unit.controller.histories import Mesh, Replica, mismatch, random_mesh
from xds.resource import TYPES


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_incremental_equals_from_scratch(seed: int) -> None:
    """Objects come, change, go; endpoints move; certificates rotate; settings switch; problems as well."""
    assert mismatch(seed) == ()


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32))
def test_replicas_serve_identical_versions(seed: int) -> None:
    """Two that were fed the same objects in different orders, one of them in many steps."""
    dice = random.Random(seed)  # noqa: S311 - dice
    mesh = random_mesh(dice)
    one, other = Replica(mesh), Replica(Mesh())
    one.wave()
    other.mesh.settings, other.mesh.roots = mesh.settings, mesh.roots
    for name in ("certificates", "objects", "workloads", "slices"):
        entries = list(getattr(mesh, name).items())
        dice.shuffle(entries)
        for key, value in entries:
            getattr(other.mesh, name)[key] = value
            if dice.random() < 0.2:
                other.wave()
    other.wave()
    assert _versions(one) == _versions(other)


def _versions(replica: Replica) -> dict[str, list[str]]:
    published = replica.published
    served = {
        node: published.snapshot(node)
        for node, group in published.members.items()
        if not group.startswith("kept:")
    }
    return {
        node: [snapshot.version(type_url) for type_url in TYPES]
        for node, snapshot in sorted(served.items())
        if snapshot is not None
    }


KILLED_BY = {
    "HTTPRouteGroups": 6,
    "MeshConfigs": 5,
    "TCPRoutes": 19,
    "TrafficSplits": 145,
    "TrafficSplits by apex": 95,
    "TrafficTargets": 41,
    "TrafficTargets by both ends": 87,
    "TrafficTargets by destination": 19,
    "TrafficTargets by source": 30,
    "certificates": 6,
    "claims by place": 13,
    "objects": 71,
    "services": 2,
    "services by addressing": 125,
    "services by label": 8,
    "settings": 11,
    "slices by address": 64,
    "slices by service": 0,
    "trust bundle": 26,
    "workloads": 0,
    "workloads by UUID": 78,
    "workloads by address": 0,
    "workloads by label": 23,
    "workloads by primary": 13,
}
"""The history that finds what is wrong without the reads of a table or index; search again when the
generator changes. Slices are their own keys, so their values never change; the others that are not here are
not read by anything derived.
"""

NOT_READ = {"services by address", "sidecars by identity", "slices", "workloads by group"}
ONE_BY_ONE = {"TrafficSplits by backend", "workloads by identity"}
"""Those that histories seldom need, for what reads them reads much else; see the test of `visible`."""


def test_every_table_and_index_has_its_mutant() -> None:
    """A new one cannot be forgotten."""
    view = Replica(Mesh()).view
    tables: list[Table[Any, Any]] = [each for each in vars(view).values() if isinstance(each, Table)]
    followers = [index for table in tables for index in table._followers if isinstance(index, Entries)]
    names = {each.name for each in tables} | {each.name for each in followers}
    assert names | {"certificates", "trust bundle"} == KILLED_BY.keys() | NOT_READ | ONE_BY_ONE


@pytest.mark.parametrize("name", KILLED_BY)
def test_every_recorded_read_matters(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the recorded reads of one table or index, what is served differs after some history."""
    record = Graph.record

    def forgetful(self: Graph, node: Node) -> None:
        if getattr(node, "origin", None) != name:
            record(self, node)

    monkeypatch.setattr(Graph, "record", forgetful)
    assert mismatch(KILLED_BY[name], 10)


@pytest.mark.parametrize("forgotten", ["", *sorted(ONE_BY_ONE)])
def test_what_a_client_sees_follows_splits_and_identities(
    forgotten: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service comes into sight by a split with a backend in sight, and by a workload of an identity."""
    record = Graph.record

    def forgetful(self: Graph, node: Node) -> None:
        if getattr(node, "origin", None) != forgotten:
            record(self, node)

    monkeypatch.setattr(Graph, "record", forgetful)
    before = (build.service("a"), build.service("b"), build.service("c"), build.workload("a", "10.0.0.1"))
    policy = (build.route_group("r", build.match("m")), build.target("t", "client", "a", build.http("r")))
    new = build.workload("b", "10.0.0.2", account="a"), build.split("s", "c", ("a", 1))
    seen = []
    for each in new:
        view = build.view(*before, *policy)
        pin = Pin(visible, view, build.identity("client"))
        assert [key.name for key in pin.value()] == ["a"]
        view.apply(view.edits_to(build.view(*before, *policy, each).known()))
        seen.append([key.name for key in pin.value()])
    assert (seen == [["a", "b"], ["a", "c"]]) is (not forgotten)


def test_every_early_stop_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that takes every outcome for the old one is found."""
    monkeypatch.setattr(Derivation, "outcome_is", lambda *_: True)
    assert mismatch(0, 10)


def test_without_a_mutant_nothing_differs() -> None:
    """Negative control: the same histories, the engine as it is."""
    assert [seed for seed in sorted(set(KILLED_BY.values())) if mismatch(seed, 10)] == []
