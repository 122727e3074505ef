"""Tests of the projection of objects: it reads like the whole object, and keeps only fields that are read."""

import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import meshwright.specs.reference
from meshwright.mesh.kinds import POD, SERVICE, TRAFFIC_TARGET, Kind
from meshwright.mesh.origins import InCluster
from meshwright.providers.kubernetes.projection import projected
from meshwright.providers.kubernetes.resources import CORE, POLICY
from meshwright.specs.manifest import split_api_version
from meshwright.specs.reader import read
from tests.golden.cases import CASES, HERE
from tests.tools import libyaml
from tests.unit.providers.kubernetes import objects

ORIGIN = InCluster("east", "1")
WATCHED = frozenset((*CORE, *POLICY))
EXAMPLES = Path(meshwright.specs.reference.__file__).parent / "examples"


def _documents() -> Iterator[Mapping[str, Any]]:
    for path in (*(HERE / case / "mesh.yaml" for case in CASES), *sorted(EXAMPLES.glob("*.yaml"))):
        yield from (item for item in libyaml.load_all(path.read_text()) if _kind(item) in WATCHED)


def _kind(document: Mapping[str, Any]) -> Kind:
    return Kind(document["kind"], split_api_version(document["apiVersion"])[0])


def _projected(document: Mapping[str, Any]) -> Any:
    return json.loads(projected(_kind(document), document["apiVersion"], document))


DOCUMENTS = tuple(_documents())

_NOISE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 70000)
    | st.sampled_from(["", "x", "TCP", "True", "10.0.0.1"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "x", "ip"]), inner, max_size=3)
    ),
    max_leaves=4,
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        yield from itertools.chain.from_iterable(_places(inner, (*path, at)) for at, inner in items)


def test_projected_manifests_read_like_the_whole_ones() -> None:
    """This holds for every manifest of the tests and the reference, including their problems."""
    assert {_kind(item) for item in DOCUMENTS} >= {*CORE, TRAFFIC_TARGET}
    for document in DOCUMENTS:
        assert read(_projected(document), ORIGIN) == read(document, ORIGIN), document


@given(st.data())
def test_projected_objects_with_random_values_read_like_the_whole_ones(data: st.DataObject) -> None:
    """A schema may allow values that no reader expects, so the values of all read fields are kept."""
    document = json.loads(json.dumps(data.draw(st.sampled_from(DOCUMENTS))))
    inside = [place for place in _places(document) if place and place[0] not in ("apiVersion", "kind")]
    *way, last = data.draw(st.sampled_from(inside))
    if [*way, last] in (["metadata"], ["metadata", "name"], ["metadata", "namespace"]):
        return  # the API server validates these fields
    parent = document
    for step in way:
        parent = parent[step]
    parent[last] = data.draw(_NOISE)
    assert _said(read(_projected(document), ORIGIN)) == _said(read(document, ORIGIN))


def _said(reading: Any) -> Any:
    """Return a reading without problems that objects in a cluster cannot have.

    These are misspelt fields of Kubernetes' own kinds. The number of keys of a misplaced mapping is left out,
    because keys that are not read are gone, and problems are sorted, because the order of keys has no
    meaning.
    """
    slips = ("MW1027", "MW1028")
    problems = [
        replace(problem, value="a mapping") if problem.value.startswith("a mapping of ") else problem
        for problem in reading.problems
        if problem.code not in slips
    ]
    return reading.objects, reading.key, sorted(problems, key=lambda problem: (problem.field, problem.code))


def test_fields_that_are_not_read_are_dropped() -> None:
    """Secrets and fields that change with every heartbeat are among them."""
    raw = objects.pod("shop-1")
    raw["metadata"] |= {"uid": "2b2b"}
    text = projected(POD, "v1", raw)
    assert json.loads(text) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "shop-1",
            "namespace": "shop",
            "uid": "2b2b",
            "labels": {"app": "shop", "osm-proxy-uuid": "shop-1-uuid"},
            "annotations": {"meshwright.dev/service": "shop"},
        },
        "spec": {
            "serviceAccountName": "shop",
            "nodeName": "node-1",
            "containers": [{"ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}]}],
        },
        "status": {
            "phase": "Running",
            "podIP": "10.0.0.1",
            "podIPs": [{"ip": "10.0.0.1"}],
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    assert "hunter2" not in text
    service = json.loads(projected(SERVICE, "v1", objects.service("shop")))
    assert set(service) <= {"apiVersion", "kind", "metadata", "spec", "status"}
    assert set(service.get("status", {})) <= {"loadBalancer"}


def test_policy_is_kept_without_its_status_and_server_fields() -> None:
    """The generation and UID stay, because they are needed to write the status."""
    raw = objects.workload("vm")
    raw["metadata"] |= {"uid": "u", "resourceVersion": "7", "selfLink": "x"}
    raw["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "a": "b"}
    kept = json.loads(projected(Kind("Workload", "meshwright.dev"), "meshwright.dev/v1alpha1", raw))
    assert set(kept) == {"apiVersion", "kind", "metadata", "spec"}
    assert kept["spec"] == raw["spec"]
    assert kept["metadata"] == {
        "name": "vm", "namespace": "shop", "labels": {"app": "shop"}, "generation": 1, "uid": "u",
        "annotations": {"a": "b"},
    }  # fmt: skip


@pytest.mark.parametrize("kind", sorted(WATCHED), ids=str)
def test_projection_accepts_any_json_value(kind: Kind) -> None:
    """The text does not depend on the order of fields."""
    for raw in (
        {},
        {"metadata": None},
        {"metadata": [], "spec": "x"},
        {"spec": {"ports": 7}, "endpoints": {}},
    ):
        assert json.loads(projected(kind, "v1", raw))["kind"] == kind.name
    one, other = {"metadata": {"name": "a", "namespace": "b"}}, {"metadata": {"namespace": "b", "name": "a"}}
    assert projected(kind, "v1", one) == projected(kind, "v1", other)
