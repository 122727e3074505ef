"""Views from manifests, for what is asked of a whole mesh."""

from catalog.store.view import MeshSettings, View
from providers.manifests import Manifests

POLICY = """
apiVersion: v1
kind: Service
metadata: {name: store, namespace: shop}
spec: {selector: {app: store}, ports: [{name: http, port: 80, targetPort: 8080}, {name: tcp-db, port: 90}]}
---
apiVersion: specs.smi-spec.io/v1alpha4
kind: HTTPRouteGroup
metadata: {name: paths, namespace: shop}
spec: {matches: [{name: one, pathRegex: /one}]}
---
apiVersion: specs.smi-spec.io/v1alpha4
kind: TCPRoute
metadata: {name: any, namespace: shop}
spec: {}
---
apiVersion: access.smi-spec.io/v1alpha3
kind: TrafficTarget
metadata: {name: by-path, namespace: shop}
spec:
  destination: {kind: ServiceAccount, name: store, namespace: shop}
  sources: [{kind: ServiceAccount, name: client, namespace: shop}]
  rules: [{kind: HTTPRouteGroup, name: paths}]
---
apiVersion: access.smi-spec.io/v1alpha3
kind: TrafficTarget
metadata: {name: by-port, namespace: shop}
spec:
  destination: {kind: ServiceAccount, name: store, namespace: shop}
  sources: [{kind: ServiceAccount, name: store, namespace: shop}]
  rules: [{kind: TCPRoute, name: any}]
---
apiVersion: split.smi-spec.io/v1alpha2
kind: TrafficSplit
metadata: {name: halves, namespace: shop}
spec: {service: store, backends: [{service: store, weight: 1}]}
"""
WORKLOAD = """
apiVersion: meshwright.dev/v1alpha1
kind: Workload
metadata: {name: %(name)s, namespace: shop, labels: {app: store}, annotations: {%(said)s}}
spec:
  address: 10.0.0.%(host)d
  uuid: %(name)s
  serviceAccount: store
  ports: [{port: 8080, protocol: http}, {port: 90, protocol: tcp}]%(explicit)s
"""
EXPLICIT = """
  applicationAddress: 127.0.0.1
  upstreams: [{service: store, port: 80, localPort: 1080}, {service: store, port: 90, localPort: 1090}]"""
DRIVER = "meshwright.dev/sidecar-driver"


def workload(name: str, driver: str = "", host: int = 1, *, explicit: bool = True) -> str:
    """Return the manifest of a workload that names a driver, or none."""
    said = f"{DRIVER}: {driver}" if driver else ""
    how = EXPLICIT if explicit else ""
    return WORKLOAD % {"name": name, "said": said, "host": host, "explicit": how}


def namespace(driver: str) -> str:
    """Return the namespace, which names a driver."""
    return f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: shop, annotations: {{{DRIVER}: {driver}}}}}\n"


def mesh_config(spec: str) -> str:
    """Return a MeshConfig with this in its `spec.sidecar`."""
    return (
        "apiVersion: config.openservicemesh.io/v1alpha2\nkind: MeshConfig\n"
        f"metadata: {{name: osm-mesh-config, namespace: osm-system}}\nspec: {{sidecar: {{{spec}}}}}\n"
    )


def view(*documents: str) -> View:
    """Return the view of these manifests."""
    manifests = Manifests().apply_all({"mesh.yaml": "\n---\n".join(documents)})
    assert not [each for each in manifests.problems() if each.severity == "error"], manifests.problems()
    return View.build(manifests.objects(), MeshSettings())
