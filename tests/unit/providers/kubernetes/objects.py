"""Objects as an API server returns them, including fields that the control plane does not read."""

from typing import Any

Raw = dict[str, Any]


def _metadata(name: str, namespace: str = "shop", **more: Any) -> Raw:
    managed = [{"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": {}}}]
    return {"name": name, "namespace": namespace, "managedFields": managed, **more}


def namespace(name: str, **labels: str) -> Raw:
    """Return a Namespace."""
    return {"metadata": {"name": name, "labels": labels}, "status": {"phase": "Active"}}


def service(name: str, namespace: str = "shop", **spec: Any) -> Raw:
    """Return a Service that selects `app=<name>`."""
    ports = [{"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP", "nodePort": 30080}]
    body = {"type": "ClusterIP", "clusterIP": "10.96.0.1", "selector": {"app": name}, "ports": ports, **spec}
    return {"metadata": _metadata(name, namespace), "spec": body, "status": {"loadBalancer": {}}}


def account(name: str, namespace: str = "shop") -> Raw:
    """Return a ServiceAccount."""
    return {"metadata": _metadata(name, namespace), "secrets": [{"name": f"{name}-token"}]}


def pod(
    name: str, address: str = "10.0.0.1", namespace: str = "shop", app: str = "shop", **status: Any
) -> Raw:
    """Return a running Pod with a sidecar."""
    ready = [
        {"type": "Initialized", "status": "True", "lastProbeTime": None},
        {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
    ]
    annotations = {"kubernetes.io/psp": "x", "meshwright.dev/service": app}
    return {
        "metadata": _metadata(
            name, namespace, labels={"app": app, "osm-proxy-uuid": f"{name}-uuid"}, annotations=annotations
        ),
        "spec": {
            "serviceAccountName": app,
            "nodeName": "node-1",
            "containers": [
                {
                    "name": "app",
                    "image": "app:1",
                    "env": [{"name": "PASSWORD", "value": "hunter2"}],
                    "ports": [{"name": "http", "containerPort": 8080, "hostPort": 0, "protocol": "TCP"}],
                }
            ],
        },
        "status": {
            "phase": "Running",
            "podIP": address,
            "podIPs": [{"ip": address}],
            "hostIP": "192.0.2.1",
            "conditions": ready,
            "containerStatuses": [{"name": "app", "restartCount": 1}],
            **status,
        },
    }


def endpoint_slice(service: str, *addresses: str, namespace: str = "shop") -> Raw:
    """Return an EndpointSlice with ready addresses."""
    labels = {"kubernetes.io/service-name": service, "endpointslice.kubernetes.io/managed-by": "x"}
    return {
        "metadata": _metadata(f"{service}-abc", namespace, labels=labels),
        "addressType": "IPv4",
        "endpoints": [
            {
                "addresses": [address],
                "conditions": {"ready": True, "serving": True, "terminating": False},
                "nodeName": "node-1",
                "targetRef": {"kind": "Pod", "name": f"pod-{address}", "uid": "u"},
            }
            for address in addresses
        ],
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
    }


def target(name: str, source: str = "client", destination: str = "shop", namespace: str = "shop") -> Raw:
    """Return a TrafficTarget."""
    return {
        "metadata": _metadata(name, namespace),
        "spec": {
            "destination": {"kind": "ServiceAccount", "name": destination, "namespace": namespace},
            "sources": [{"kind": "ServiceAccount", "name": source, "namespace": namespace}],
            "rules": [{"kind": "TCPRoute", "name": "all"}],
        },
    }


def workload(name: str, address: str = "10.1.0.1", namespace: str = "shop") -> Raw:
    """Return a Workload with a status."""
    return {
        "metadata": _metadata(name, namespace, labels={"app": "shop"}, generation=1),
        "spec": {"address": address, "serviceAccount": "shop", "uuid": f"{name}-uuid"},
        "status": {"conditions": [{"type": "Accepted", "status": "True"}]},
    }
