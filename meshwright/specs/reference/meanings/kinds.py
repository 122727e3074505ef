"""The kinds in the order of the page, what each is for, and what its fields mean."""

from collections.abc import Mapping
from typing import Final

from meshwright.mesh import kinds
from meshwright.mesh.kinds import Kind
from meshwright.specs.reference.meaning import Meanings
from meshwright.specs.reference.meanings import core, osm, osm_policy, policy, smi
from meshwright.specs.reference.meanings import own_kinds as own

_CONTROLLER: Final = "Makes pods; what they will be is known before they run."

KINDS: Final[Mapping[Kind, tuple[str, Meanings]]] = {
    kinds.WORKLOAD: ("Something that runs on a plain machine, with or without a sidecar.", own.WORKLOAD),
    kinds.TRAFFIC_TARGET: ("Who may call whom, by which routes.", smi.TRAFFIC_TARGET),
    kinds.HTTP_ROUTE_GROUP: ("Kinds of HTTP requests, by name.", smi.HTTP_ROUTE_GROUP),
    kinds.TCP_ROUTE: ("Connections whatever they carry.", smi.TCP_ROUTE),
    kinds.TRAFFIC_SPLIT: ("To which services the calls of one go, in which ratio.", smi.TRAFFIC_SPLIT),
    kinds.ROUTE_POLICY: ("What becomes of requests on their way to a service.", policy.ROUTE_POLICY),
    kinds.UPSTREAM_POLICY: ("How callers reach the endpoints of a service.", policy.UPSTREAM_POLICY),
    kinds.EXTERNAL_AUTHORIZATION: (
        "Who is asked about requests that policy admits.",
        policy.EXTERNAL_AUTHORIZATION,
    ),
    kinds.MUTUAL_TLS: ("Who must show a certificate, and who may call in plain text.", policy.MUTUAL_TLS),
    kinds.EGRESS: ("What may leave the mesh, and whose calls.", osm_policy.EGRESS),
    kinds.RETRY: ("What a caller tries again.", osm_policy.RETRY),
    kinds.UPSTREAM_TRAFFIC_SETTING: (
        "How much of what a service is sent is taken, at once and in a time.",
        osm_policy.UPSTREAM_TRAFFIC_SETTING,
    ),
    kinds.TELEMETRY: ("What sidecars tell of requests and connections, and whom.", osm_policy.TELEMETRY),
    kinds.EXTENSION_SERVICE: (
        "A server beside the mesh that sidecars ask or tell.",
        osm_policy.EXTENSION_SERVICE,
    ),
    kinds.MESH_ROOT_CERTIFICATE: ("A root of the mesh, and whether it signs.", osm.MESH_ROOT_CERTIFICATE),
    kinds.MESH_CONFIG: ("The settings of the mesh.", osm.MESH_CONFIG),
    kinds.INGRESS_BACKEND: ("Who may call from outside the mesh, and which ports.", osm.INGRESS_BACKEND),
    kinds.NAMESPACE: ("A namespace, and what holds for all that runs in it.", core.NAMESPACE),
    kinds.SERVICE_ACCOUNT: ("An identity.", core.SERVICE_ACCOUNT),
    kinds.SERVICE: ("A name that is called, and who stands behind it.", core.SERVICE),
    kinds.ENDPOINT_SLICE: (
        "Addresses behind a Service, as Kubernetes or anybody has them.",
        core.ENDPOINT_SLICE,
    ),
    kinds.ENDPOINTS: ("The same in Kubernetes' older form.", core.ENDPOINTS),
    kinds.POD: ("Something that runs in Kubernetes, intercepted transparently.", core.POD),
    kinds.DEPLOYMENT: (_CONTROLLER, core.SCALED),
    kinds.REPLICA_SET: (_CONTROLLER, core.SCALED),
    kinds.REPLICATION_CONTROLLER: (_CONTROLLER, core.SCALED),
    kinds.STATEFUL_SET: (_CONTROLLER, core.SCALED),
    kinds.DAEMON_SET: (_CONTROLLER, core.CONTROLLER),
    kinds.JOB: (_CONTROLLER, core.CONTROLLER),
    kinds.CRON_JOB: ("Makes Jobs.", core.CRON_JOB),
    kinds.POD_TEMPLATE: ("What pods are made of, as an object of its own.", core.POD_TEMPLATE),
}
"""All that are read, but for UDPRoute, which is refused."""
