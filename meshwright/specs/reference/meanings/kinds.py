"""Kinds in the order of the page, with their purpose and the meanings of their fields."""

from collections.abc import Mapping
from typing import Final

from meshwright.mesh import kinds
from meshwright.mesh.kinds import Kind
from meshwright.specs.reference.meaning import Meanings
from meshwright.specs.reference.meanings import (
    backend_tls,
    client_traffic,
    core,
    gateway,
    gateways,
    osm,
    osm_policy,
    policy,
    smi,
)
from meshwright.specs.reference.meanings import own_kinds as own

_CONTROLLER: Final = "A controller of Pods, read to check its Pods before they run."

KINDS: Final[Mapping[Kind, tuple[str, Meanings]]] = {
    kinds.WORKLOAD: ("A process on a machine without Kubernetes, with or without a sidecar.", own.WORKLOAD),
    kinds.TRAFFIC_TARGET: (
        "Permission for clients to call a service account, by routes.",
        smi.TRAFFIC_TARGET,
    ),
    kinds.HTTP_ROUTE_GROUP: ("Named matches for HTTP requests.", smi.HTTP_ROUTE_GROUP),
    kinds.TCP_ROUTE: ("Match for TCP connections with any content.", smi.TCP_ROUTE),
    kinds.TRAFFIC_SPLIT: (
        "Division of a service's requests among other services, by weight.",
        smi.TRAFFIC_SPLIT,
    ),
    kinds.ROUTE_POLICY: (
        "Timeouts, headers, mirrors and faults for requests to a service.",
        policy.ROUTE_POLICY,
    ),
    kinds.UPSTREAM_POLICY: (
        "Load balancing, health checks and outlier detection for a service.",
        policy.UPSTREAM_POLICY,
    ),
    kinds.EXTERNAL_AUTHORIZATION: (
        "External authorizer for requests that policy allows.",
        policy.EXTERNAL_AUTHORIZATION,
    ),
    kinds.MUTUAL_TLS: (
        "Clients that need a certificate, and clients that may use plain text.",
        policy.MUTUAL_TLS,
    ),
    kinds.CLIENT_TRAFFIC_POLICY: (
        "Limits, addresses and rates of the clients of gateways.",
        client_traffic.CLIENT_TRAFFIC_POLICY,
    ),
    kinds.EGRESS: ("Permission for clients to call destinations outside the mesh.", osm_policy.EGRESS),
    kinds.RETRY: ("Retries of a client's requests.", osm_policy.RETRY),
    kinds.UPSTREAM_TRAFFIC_SETTING: (
        "Limits of connections and requests to a service, at once and per unit of time.",
        osm_policy.UPSTREAM_TRAFFIC_SETTING,
    ),
    kinds.TELEMETRY: ("Access logs and traces of sidecars, and their destinations.", osm_policy.TELEMETRY),
    kinds.EXTENSION_SERVICE: (
        "A server outside the mesh that sidecars call, for example a log collector.",
        osm_policy.EXTENSION_SERVICE,
    ),
    kinds.MESH_ROOT_CERTIFICATE: (
        "A root certificate of the mesh, and its role.",
        osm.MESH_ROOT_CERTIFICATE,
    ),
    kinds.MESH_CONFIG: ("The settings of the mesh.", osm.MESH_CONFIG),
    kinds.INGRESS_BACKEND: (
        "Permission for clients outside the mesh to call ports of services.",
        osm.INGRESS_BACKEND,
    ),
    kinds.GATEWAY_CLASS: ("The controller of a class of gateways.", gateways.GATEWAY_CLASS),
    kinds.GATEWAY: ("Ports at the edge of the mesh, to which routes attach.", gateways.GATEWAY),
    kinds.LISTENER_SET: ("Further listeners of a gateway, written by other people.", gateways.LISTENER_SET),
    kinds.BACKEND_TLS_POLICY: (
        "TLS from gateways to the endpoints of a Service, with the check of their certificates.",
        backend_tls.BACKEND_TLS_POLICY,
    ),
    kinds.HTTP_ROUTE: (
        "Rules for HTTP requests to a Service: routing, redirects, header changes, timeouts and retries.",
        gateway.HTTP_ROUTE,
    ),
    kinds.GRPC_ROUTE: ("Rules for gRPC calls of a Service.", gateway.GRPC_ROUTE),
    kinds.TLS_ROUTE: ("Backends of TLS connections, by the server name.", gateway.TLS_ROUTE),
    kinds.GATEWAY_TCP_ROUTE: ("Backends of TCP connections to a Service.", gateway.TCP_ROUTE),
    kinds.REFERENCE_GRANT: ("Permission for references from other namespaces.", gateway.REFERENCE_GRANT),
    kinds.NAMESPACE: ("A namespace, with settings for all its workloads.", core.NAMESPACE),
    kinds.SERVICE_ACCOUNT: ("An identity.", core.SERVICE_ACCOUNT),
    kinds.SERVICE: ("A name for clients, with ports and workloads.", core.SERVICE),
    kinds.ENDPOINT_SLICE: (
        "Endpoints of a Service, from Kubernetes or written by hand.",
        core.ENDPOINT_SLICE,
    ),
    kinds.ENDPOINTS: ("Endpoints of a Service, in Kubernetes' older form.", core.ENDPOINTS),
    kinds.POD: ("A Pod in Kubernetes, with transparent interception.", core.POD),
    kinds.DEPLOYMENT: (_CONTROLLER, core.SCALED),
    kinds.REPLICA_SET: (_CONTROLLER, core.SCALED),
    kinds.REPLICATION_CONTROLLER: (_CONTROLLER, core.SCALED),
    kinds.STATEFUL_SET: (_CONTROLLER, core.SCALED),
    kinds.DAEMON_SET: (_CONTROLLER, core.CONTROLLER),
    kinds.JOB: (_CONTROLLER, core.CONTROLLER),
    kinds.CRON_JOB: ("A controller of Jobs, read to check their Pods before they run.", core.CRON_JOB),
    kinds.POD_TEMPLATE: ("A Pod template as an object of its own.", core.POD_TEMPLATE),
}
"""All kinds with a reader, except UDPRoute, which is refused."""
