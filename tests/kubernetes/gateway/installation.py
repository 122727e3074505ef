"""The chart on a real node, with gateways, for the tests of Gateway API objects."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.kubernetes.conftest import skip_without
from tests.kubernetes.gateway import suite
from tests.kubernetes.install.test_chart_on_node import HOME, NOW, Release, values
from tests.kubernetes.tools.helm import CHART, Helm
from tests.kubernetes.tools.kubectl import Kubectl
from tests.kubernetes.tools.objects import Document
from tests.tools import envoy
from tools.real_parts.building import shared
from tools.real_parts.images import own_images
from tools.real_parts.node import Node
from tools.real_parts.parts import GATEWAY, GATEWAY_CONFORMANCE


@contextmanager
def installed(node: Node, administrator: Kubectl, folder: Path) -> Iterator[None]:
    """Install the chart and the Gateway API's definitions on the node, and remove both at the end."""
    for part in GATEWAY:
        skip_without(part)
    for image in (own_images.control_plane(NOW), own_images.proxy(NOW, Path(envoy.program() or ""))):
        node.load(image)
    for image in (suite.echo(folder / "keys"), *suite.backends()):
        node.load(image)
    definitions = (f"-f={shared(GATEWAY_CONFORMANCE)}",)
    administrator("apply", "--server-side", *definitions)
    # Helm refuses existing objects, such as the Lease of a server of another test.
    administrator("delete", "namespace", HOME, "--ignore-not-found")
    administrator("delete", "crd", "-l", "app.kubernetes.io/name=meshwright")
    administrator.apply(namespace(HOME))
    release = Release(Helm(folder, administrator.kubeconfig, administrator.enter), administrator, folder)
    chart = {**values(NOW), "replicas": 1, "gateways": {"enabled": True}}
    release.do("install", str(CHART), values=chart)
    release.webhooks()
    administrator.apply(_configuration())
    yield
    release.do("uninstall")
    administrator("delete", "crd", "-l", "app.kubernetes.io/name=meshwright")
    administrator("delete", *definitions)
    administrator("delete", "namespace", HOME)


def namespace(name: str, labels: Document | None = None) -> Document:
    """Return a Namespace with labels."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels or {}}}


def _configuration() -> Document:
    """Return a MeshConfig that lets calls to addresses of Pods leave the sidecar as they are."""
    return {
        "apiVersion": "config.openservicemesh.io/v1alpha2",
        "kind": "MeshConfig",
        "metadata": {"name": "osm-mesh-config", "namespace": HOME},
        "spec": {"traffic": {"enableEgress": True}},
    }
