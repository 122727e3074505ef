"""The Gateway API's conformance suite for meshes, on a real node with the chart installed.

`make test-kubernetes` runs a few core tests, each of which fails without a mesh. `make conformance-gateway`
runs all tests and writes the report (docs/conformance); the suite also runs in Pods without sidecars, which
shows what each test proves.
"""

import os
import shutil
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Final

import pytest

from tests.kubernetes.gateway import suite
from tests.kubernetes.gateway.installation import namespace
from tests.kubernetes.gateway.suite import Choice, Implementation, Outcome, Results
from tests.kubernetes.tools.kubectl import Kubectl
from tests.kubernetes.tools.objects import Document
from tools.real_parts.node import Node

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.root,
    pytest.mark.timeout(3600),
    pytest.mark.usefixtures("helm_part"),
]

long = pytest.mark.skipif(
    os.environ.get("MESHWRIGHT_SOAK") != "long", reason="make conformance-gateway runs it"
)

PROVING: Final = frozenset(
    (
        "MeshGRPCRouteRequestHeaderModifier",
        "MeshGRPCRouteWeight",
        "MeshHTTPRouteRedirectHostAndStatus",
        "MeshHTTPRouteRequestHeaderModifier",
        "MeshHTTPRouteWeight",
    )
)
"""Core tests that fail without a mesh."""
PASSING_ANYWAY: Final = frozenset(
    ("MeshBasic", "MeshHTTPRouteMatching", "MeshHTTPRouteSimpleSameNamespace", "MeshTrafficSplit")
)
"""Core tests that pass without a mesh, because the suite waits for three right answers in a row."""
REPORT: Final = f"standard-{version('meshwright')}-default-report.yaml"
"""Name of the report, in the form that the Gateway API's collection of reports demands."""
_INJECTED: Final = {"meshwright.dev/inject": "true"}
_PERMISSIVE: Final = {"meshwright.dev/permissive": "true"}


def _accepts_plain_text(namespace: str) -> Document:
    """Return a MutualTLS of a namespace that accepts calls to addresses of Pods, which are in plain text."""
    return {
        "apiVersion": "policy.meshwright.dev/v1alpha1",
        "kind": "MutualTLS",
        "metadata": {"name": "pod-addresses", "namespace": namespace},
        "spec": {"mode": "Permissive"},
    }


def _run(node: Node, choice: Choice, report: Path, seconds: float) -> Results:
    """Run the suite, and print the outcome of each test that is not skipped."""
    results = suite.run(node, choice, report, Implementation(version("meshwright")), seconds)
    for outcome in (Outcome.PASSED, Outcome.FAILED):
        sys.stdout.write("".join(f"{outcome.name} {name}\n" for name in sorted(results.names(outcome))))
    return results


def test_core_tests_that_need_a_mesh_pass(home: Node, node_administrator: Kubectl, tmp_path: Path) -> None:
    """Routes change headers, redirect, and divide requests by weight, for HTTP and gRPC."""
    left_out = tuple(sorted(PASSING_ANYWAY))
    # Without any feature the suite would look for a GatewayClass with features; each mesh has this one.
    choice = Choice(features=("Mesh",), left_out=left_out, labels=_INJECTED, annotations=_PERMISSIVE)
    results = _run(home, choice, tmp_path / REPORT, 300)
    assert results.names(Outcome.PASSED) == PROVING, results.output[-10000:]


@long
def test_all_tests_for_meshes_pass(home: Node, node_administrator: Kubectl, tmp_path: Path) -> None:
    """All tests of both profiles pass with all features, and the seven tests outside of the profiles.

    With MESHWRIGHT_GATEWAY_REPORTS=FOLDER the report is written there.
    """
    for name in suite.NAMESPACES:
        node_administrator.apply(namespace(name, _INJECTED), _accepts_plain_text(name))
    report = tmp_path / REPORT
    results = _run(home, Choice(labels=_INJECTED, annotations=_PERMISSIVE), report, 3000)
    if folder := os.environ.get("MESHWRIGHT_GATEWAY_REPORTS"):
        shutil.copyfile(report, Path(folder) / REPORT)
    assert results.names(Outcome.FAILED) == set()


@long
def test_core_tests_fail_without_a_mesh(home: Node, tmp_path: Path) -> None:
    """Without sidecars the routes have no effect, so that tests which pass nevertheless prove nothing."""
    results = _run(home, Choice(patience=10), tmp_path / REPORT, 3000)
    assert results.names(Outcome.FAILED) >= PROVING
