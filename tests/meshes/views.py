"""Views from manifests, for tests of a whole mesh."""

from catalog.store.view import MeshSettings, View
from meshwright.providers.directory.manifests import Manifests
from tests.meshes import texts

POLICY = texts.joined(
    texts.service("store", texts.port(80), "{name: tcp-db, port: 90}"),
    texts.route_group("paths", texts.match("one", "/one")),
    texts.tcp_route("any"),
    texts.target("by-path", "client", "store", texts.http("paths")),
    texts.target("by-port", "store", "store", texts.tcp("any")),
    texts.split("halves", "store", ("store", 1)),
)
_EXPLICIT = f"""applicationAddress: 127.0.0.1, upstreams: [{
    ", ".join(texts.upstream("store", "127.0.0.1", 1000 + number, number) for number in (80, 90))
}]"""


def workload(name: str, driver: str = "", host: int = 1, *, explicit: bool = True) -> str:
    """Return the manifest of a workload that names a driver, or none."""
    text = f"{texts.DRIVER}: {driver}" if driver else ""
    more = [
        "ports: [{port: 8080, protocol: http}, {port: 90, protocol: tcp}]",
        *([_EXPLICIT] if explicit else []),
    ]
    return texts.workload(
        name, f"10.0.0.{host}", app="store", account="store", spec=", ".join(more), annotations=text
    )


def namespace(driver: str) -> str:
    """Return the namespace, which names a driver."""
    return texts.manifest(
        "Namespace", "shop", namespace="", metadata=f"annotations: {{{texts.DRIVER}: {driver}}}"
    )


def mesh_config(spec: str) -> str:
    """Return a MeshConfig with this in its `spec.sidecar`."""
    return texts.mesh_config(f"sidecar: {{{spec}}}")


def view(*documents: str) -> View:
    """Return the view of these manifests."""
    manifests = Manifests().apply_all({"mesh.yaml": texts.joined(*documents)})
    assert not [problem for problem in manifests.problems() if problem.severity == "error"], (
        manifests.problems()
    )
    return View.build(manifests.objects(), MeshSettings())
