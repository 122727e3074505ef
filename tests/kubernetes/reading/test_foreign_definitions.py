"""Test of a cluster with definitions published by others: objects are read, and ours replace theirs."""

from collections.abc import Iterator
from typing import Any

import pytest

from meshwright.cli.offline import reference
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.origins import InCluster
from meshwright.mesh.policies.smi import TrafficSplit, TrafficTarget
from meshwright.mesh.problems.problem import Severity
from meshwright.specs.displayed_objects import read_shown
from tests.kubernetes.reading.foreign_definitions import DEFINITIONS
from tests.kubernetes.tools.api_requests import STRICT, Asking, established, path
from tools.real_parts.cluster import cluster

ORIGIN = InCluster("here", "")


@pytest.fixture(scope="module")
def asking(parts: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asking]:
    """Return a client for a separate API server with these definitions."""
    with cluster(tmp_path_factory.mktemp("published") / "cluster") as made, Asking(made) as asking:
        established(asking, *DEFINITIONS)
        yield asking


def _read(asking: Asking, document: dict[str, Any], api_version: str = "") -> Any:
    """Return the meaning of an object as the API server shows it."""
    shown = dict(asking("GET", path(document, api_version)).body)
    manifest_reading = read_shown(shown, ORIGIN)
    assert [problem for problem in manifest_reading.problems if problem.severity is Severity.ERROR] == []
    ((_, value),) = manifest_reading.objects
    return value


def _document(api_version: str, kind: str, **fields: Any) -> dict[str, Any]:
    metadata = {"name": "one", "namespace": "default"}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


SPLIT = _document(
    "split.smi-spec.io/v1alpha1",
    "TrafficSplit",
    spec={"service": "a", "backends": [{"service": "b", "weight": "500m"}, {"service": "c", "weight": 1}]},
)
ACCOUNT = {"kind": "ServiceAccount", "name": "a"}
TARGET = _document(
    "access.smi-spec.io/v1alpha3",
    "TrafficTarget",
    spec={"destination": ACCOUNT, "rules": [{"kind": "TCPRoute", "name": "r"}], "sources": [ACCOUNT]},
)
CONFIG = _document(
    "config.openservicemesh.io/v1alpha2",
    "MeshConfig",
    spec={
        "sidecar": {"logLevel": "error", "maxDataPlaneConnections": 0},
        "traffic": {"enableEgress": True},
        "certificate": {"serviceCertValidityDuration": "24h", "certKeyBitSize": 2048},
    },
)


def test_objects_under_published_definitions_keep_their_meaning_under_ours(asking: Asking) -> None:
    """An object means the same in each version in which it is written and shown.

    For example, a weight may be a quantity in v1alpha1.
    """
    for document in (SPLIT, TARGET, CONFIG):
        assert asking.create(document).status == 201
    before = [_read(asking, item) for item in (SPLIT, TARGET, CONFIG)]
    split, target, config = before
    assert isinstance(split, TrafficSplit)
    assert isinstance(target, TrafficTarget)
    assert isinstance(config, MeshConfig)
    assert [backend.weight for backend in split.backends] == [500, 1000]
    assert _read(asking, SPLIT, "split.smi-spec.io/v1alpha2") == split
    assert config.egress

    established(asking, *reference.definitions(()))

    def served(group: str) -> str:
        return str(asking("GET", f"/apis/{group}").body["preferredVersion"]["version"])

    asking.until(
        "/apis/split.smi-spec.io", lambda result: result["preferredVersion"]["version"] == "v1alpha4"
    )
    assert [_read(asking, item) for item in (SPLIT, TARGET, CONFIG)] == before
    assert _read(asking, SPLIT, "split.smi-spec.io/v1alpha4") == split
    assert served("access.smi-spec.io") == "v1alpha3"
    at = f"{path(TARGET, 'access.smi-spec.io/v1alpha1')}?{STRICT}"
    label = {"metadata": {"labels": {"a": "b"}}}
    assert asking("PATCH", at, label, "application/merge-patch+json").status == 200
    assert _read(asking, TARGET) == target
