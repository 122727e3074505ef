"""The Gateway API's conformance suite for meshes, on a real node with the chart installed.

`make test-kubernetes` runs a few core tests, each of which fails without a mesh. `make conformance-gateway`
runs all tests and writes the report (docs/conformance); the suite also runs in Pods without sidecars, which
shows what each test proves.
"""

import os
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Final

import pytest

from tests.kubernetes.conftest import skip_without
from tests.kubernetes.gateway import suite
from tests.kubernetes.gateway.suite import Choice, Implementation, Outcome, Results
from tests.kubernetes.install.test_chart_on_node import HOME, NOW, Release, values
from tests.kubernetes.tools.helm import CHART, Helm
from tests.kubernetes.tools.kubectl import Kubectl
from tests.kubernetes.tools.objects import Document
from tests.tools import envoy
from tools.real_parts.building import shared
from tools.real_parts.images import own_images
from tools.real_parts.node import Node
from tools.real_parts.parts import GATEWAY, GATEWAY_CONFORMANCE

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


@pytest.fixture(scope="module")
def home(
    real_node: Node, node_administrator: Kubectl, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Node]:
    """Install the chart and the Gateway API's definitions on the node, and remove both at the end."""
    for part in GATEWAY:
        skip_without(part)
    folder, administrator = tmp_path_factory.mktemp("gateway"), node_administrator
    for image in (own_images.control_plane(NOW), own_images.proxy(NOW, Path(envoy.program() or ""))):
        real_node.load(image)
    real_node.load(suite.echo(folder / "keys"))
    definitions = (f"-f={shared(GATEWAY_CONFORMANCE)}",)
    administrator("apply", "--server-side", *definitions)
    # Helm refuses existing objects, such as the Lease of a server of another test.
    administrator("delete", "namespace", HOME, "--ignore-not-found")
    administrator("delete", "crd", "-l", "app.kubernetes.io/name=meshwright")
    administrator.apply(_namespace(HOME))
    release = Release(Helm(folder, administrator.kubeconfig, administrator.enter), administrator, folder)
    release.do("install", str(CHART), values={**values(NOW), "replicas": 1})
    release.webhooks()
    administrator.apply(_configuration())
    yield real_node
    release.do("uninstall")
    administrator("delete", "crd", "-l", "app.kubernetes.io/name=meshwright")
    administrator("delete", *definitions)
    administrator("delete", "namespace", HOME)


def _namespace(name: str, labels: Document | None = None) -> Document:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels or {}}}


def _configuration() -> Document:
    """Return a MeshConfig that lets calls to addresses of Pods leave the sidecar as they are."""
    return {
        "apiVersion": "config.openservicemesh.io/v1alpha2",
        "kind": "MeshConfig",
        "metadata": {"name": "osm-mesh-config", "namespace": HOME},
        "spec": {"traffic": {"enableEgress": True}},
    }


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
        node_administrator.apply(_namespace(name, _INJECTED), _accepts_plain_text(name))
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
