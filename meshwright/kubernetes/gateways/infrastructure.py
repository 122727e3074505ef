"""Objects that run the proxies of a Gateway: ServiceAccount, Deployment, Service, PodDisruptionBudget.

The Pods have one container, which the injection webhook completes like every sidecar: the image `auto`, the
credentials and the settings come from there. So a Gateway's Pods change with the mesh as other Pods do.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from meshwright.kubernetes.gateways.parameters import GatewayParameters
from meshwright.mesh.gateway.gateways import Gateway, Listener, ListenerProtocol
from meshwright.mesh.kinds import GATEWAY, GATEWAY_API
from meshwright.sidecars.injection.author_container import AUTO
from meshwright.sidecars.injection.names import SIDECAR_CONTAINER
from meshwright.specs.annotations import GATEWAY_ANNOTATION, HOME, INJECT, REVISION

Document = dict[str, Any]

NAME_LABEL: Final = "gateway.networking.k8s.io/gateway-name"
CLASS_LABEL: Final = "gateway.networking.k8s.io/gateway-class-name"
"""Labels of everything that is made for a Gateway (GEP-1762)."""

_LONGEST: Final = 63
"""Greatest number of characters of a label's value, and of a Service's name."""
_HASH: Final = 8
_GRACE_SECONDS: Final = 60
"""Longer than the agent serves after SIGTERM, so that requests in work end well."""
_LOW_PORTS: Final = "net.ipv4.ip_unprivileged_port_start"
"""Sysctl of the Pod alone, among the safe ones of Kubernetes, which Pod Security `restricted` allows."""
_NODE: Final = "kubernetes.io/hostname"


@dataclass(frozen=True, slots=True)
class Home:
    """The control plane: its namespace, a label of all objects, and its revision, which injects the Pods."""

    namespace: str
    revision: str = ""


def infrastructure(
    gateway: Gateway, parameters: GatewayParameters, home: Home, of_sets: Iterable[Listener] = ()
) -> tuple[Document, ...]:
    """Return the objects of a Gateway, in the order in which they are applied.

    `of_sets` are the listeners of its ListenerSets, whose ports the Service has too.
    """
    name = object_name(gateway)
    labels = {
        **dict(gateway.infrastructure.labels),
        NAME_LABEL: shortened(gateway.key.name),
        CLASS_LABEL: shortened(gateway.class_name),
    }
    made = _ObjectsOfGateway(gateway, parameters, home, name, labels, (*gateway.listeners, *of_sets))
    return tuple(made.objects())


def object_name(gateway: Gateway) -> str:
    """Return the name of a Gateway's objects: `<gateway>-<class>`, at most 63 characters."""
    # The name of a Service is a DNS label, which has no dots.
    return shortened(f"{gateway.key.name}-{gateway.class_name}".replace(".", "-"))


def shortened(text: str) -> str:
    """Return a text of at most 63 characters; a longer one is cut and ends in a hash of the whole."""
    if len(text) <= _LONGEST:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:_HASH]
    return f"{text[: _LONGEST - _HASH - 1].rstrip('-.')}-{digest}"


@dataclass(frozen=True, slots=True)
class _ObjectsOfGateway:
    """The common properties of a Gateway's objects."""

    gateway: Gateway
    parameters: GatewayParameters
    home: Home
    name: str
    labels: Mapping[str, str]
    listeners: tuple[Listener, ...]

    def objects(self) -> Iterator[Document]:
        yield self._object("v1", "ServiceAccount")
        yield self._object("apps/v1", "Deployment", self._deployment())
        yield self._object("v1", "Service", self._service())
        if self.parameters.replicas > 1:
            budget = {"maxUnavailable": 1, "selector": {"matchLabels": self._selector()}}
            yield self._object("policy/v1", "PodDisruptionBudget", budget)

    def _object(self, version: str, kind: str, spec: Document | None = None) -> Document:
        metadata = {
            "name": self.name,
            "namespace": str(self.gateway.key.namespace),
            "labels": {**self.labels, HOME: self.home.namespace},
            "annotations": dict(self.gateway.infrastructure.annotations),
            "ownerReferences": [
                {
                    "apiVersion": f"{GATEWAY_API}/v1",
                    "kind": GATEWAY.name,
                    "name": self.gateway.key.name,
                    "uid": self.gateway.uid,
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        }
        made: Document = {"apiVersion": version, "kind": kind, "metadata": metadata}
        return made if spec is None else {**made, "spec": spec}

    def _selector(self) -> Document:
        return {NAME_LABEL: self.labels[NAME_LABEL]}

    def _service(self) -> Document:
        ports = sorted({(at.port, _transport(at.protocol)) for at in self.listeners})
        return {
            "type": str(self.parameters.service_type),
            "ipFamilyPolicy": "PreferDualStack",
            "selector": self._selector(),
            "ports": [
                {
                    "name": f"{transport.lower()}-{port}",
                    "port": int(port),
                    "targetPort": int(port),
                    "protocol": transport,
                }
                for port, transport in ports
            ],
        }

    def _deployment(self) -> Document:
        revision = {REVISION: self.home.revision} if self.home.revision else {}
        return {
            "replicas": self.parameters.replicas,
            "selector": {"matchLabels": self._selector()},
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
            },
            "template": {
                "metadata": {
                    "labels": {**self.labels, INJECT: "true", **revision},
                    "annotations": {
                        **dict(self.gateway.infrastructure.annotations),
                        GATEWAY_ANNOTATION: self.gateway.key.name,
                    },
                },
                "spec": self._pod(),
            },
        }

    def _pod(self) -> Document:
        container: Document = {"name": SIDECAR_CONTAINER, "image": AUTO}
        if self.parameters.resources:
            container["resources"] = {
                kind: dict(amounts) for kind, amounts in self.parameters.resources.items()
            }
        return {
            "serviceAccountName": self.name,
            # The agent proves itself with a projected token for its own audience, and calls no API server.
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": _GRACE_SECONDS,
            "securityContext": {
                "runAsNonRoot": True,
                "seccompProfile": {"type": "RuntimeDefault"},
                "sysctls": [{"name": _LOW_PORTS, "value": "0"}],
            },
            "topologySpreadConstraints": [
                {
                    "maxSkew": 1,
                    "topologyKey": _NODE,
                    "whenUnsatisfiable": "ScheduleAnyway",
                    "labelSelector": {"matchLabels": self._selector()},
                }
            ],
            "containers": [container],
        }


def _transport(protocol: str) -> str:
    return "UDP" if protocol == ListenerProtocol.UDP else "TCP"
