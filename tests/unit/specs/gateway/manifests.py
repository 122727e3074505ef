"""Manifests of the Gateway API for tests of the readers."""

from typing import Any

from meshwright.mesh.gateway.references import ParentRef
from meshwright.mesh.kinds import SERVICE
from meshwright.mesh.origins import InCluster, InFile, Origin
from meshwright.specs.reader import ManifestReading, read
from tests.tools import libyaml

IN_FILE = InFile("routes.yaml")
IN_CLUSTER = InCluster("east", "17", 3)


def manifest(kind: str, spec: str, version: str = "v1") -> dict[str, Any]:
    """Return the manifest of an object `shop/r` with this spec in YAML."""
    return {
        "apiVersion": f"gateway.networking.k8s.io/{version}",
        "kind": kind,
        "metadata": {"name": "r", "namespace": "shop"},
        "spec": libyaml.load(spec),
    }


def of_rule(rule: str, kind: str = "HTTPRoute", origin: Origin = IN_FILE) -> ManifestReading:
    """Read a route of a Service with one rule, or several with commas between them."""
    spec = "{parentRefs: [{group: '', kind: Service, name: web}], rules: [" + rule + "]}"
    return read(manifest(kind, spec), origin)


PARENTS = (ParentRef(SERVICE, "web"),)
"""Parents of the route of `of_rule`."""


def route_of(reading: ManifestReading) -> Any:
    """Return the route of a reading that made an object."""
    ((_, route),) = reading.objects
    return route


def faults(reading: ManifestReading) -> list[str]:
    """Return the fields with an error."""
    return [problem.field for problem in reading.problems if problem.severity.value == "error"]
