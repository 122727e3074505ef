"""Manifests that the tests of rejections have in common: a permissive mesh, and its services."""

BASE = """
apiVersion: config.openservicemesh.io/v1alpha2
kind: MeshConfig
metadata: {name: osm-mesh-config, namespace: osm-system}
spec: {traffic: {enablePermissiveTrafficPolicyMode: true}}
"""


def service(name: str) -> str:
    """Return a service of the namespace shop: port 80, led to 18080."""
    return f"""
apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: shop}}
spec: {{selector: {{app: {name}}}, ports: [{{name: http, port: 80, targetPort: 18080}}]}}
"""
