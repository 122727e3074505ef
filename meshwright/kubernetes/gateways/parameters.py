"""Parameters of a gateway's proxies: a ConfigMap that `infrastructure.parametersRef` names.

    replicas: "3"
    serviceType: ClusterIP        # or NodePort, LoadBalancer
    resources: |                  # of the proxy's container, as in a Pod
      requests: {cpu: 100m, memory: 128Mi}

All keys are optional. An unknown key or a wrong value refuses the ConfigMap as a whole.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

MOST_REPLICAS: Final = 1000
_KEYS: Final = ("replicas", "resources", "serviceType")


class ServiceType(enum.StrEnum):
    """Types of the Service in front of a gateway's proxies."""

    CLUSTER_IP = "ClusterIP"
    NODE_PORT = "NodePort"
    LOAD_BALANCER = "LoadBalancer"


@dataclass(frozen=True, slots=True)
class GatewayParameters:
    """Number of proxies, their resources as in a Pod (empty for the mesh's), and the type of the Service."""

    replicas: int = 2
    service_type: ServiceType = ServiceType.LOAD_BALANCER
    resources: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


class ParametersError(ValueError):
    """A ConfigMap with a wrong key or value; the text names it, and what would be right."""


def read_parameters(data: Mapping[str, Any]) -> GatewayParameters:
    """Read the `data` of a ConfigMap. Raises ParametersError."""
    if unknown := sorted(set(data) - set(_KEYS)):
        raise ParametersError(f"data.{unknown[0]} is unknown; the keys are {', '.join(_KEYS)}")
    known = GatewayParameters()
    return GatewayParameters(
        replicas=_replicas(data["replicas"]) if "replicas" in data else known.replicas,
        service_type=_type(data["serviceType"]) if "serviceType" in data else known.service_type,
        resources=_resources(data["resources"]) if "resources" in data else known.resources,
    )


def _replicas(text: object) -> int:
    digits = str(text).strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 4 and int(digits) <= MOST_REPLICAS):
        raise ParametersError(f"data.replicas is {text!r}: must be a number from 0 to {MOST_REPLICAS}")
    return int(digits)


def _type(text: object) -> ServiceType:
    try:
        return ServiceType(str(text).strip())
    except ValueError:
        raise ParametersError(
            f"data.serviceType is {text!r}: must be one of {', '.join(ServiceType)}"
        ) from None


def _resources(text: object) -> Mapping[str, Mapping[str, str]]:
    try:
        content = yaml.safe_load(str(text))
    except yaml.YAMLError as error:
        raise ParametersError(f"data.resources is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict) or not set(content) <= {"limits", "requests"}:
        raise ParametersError("data.resources must be a mapping with limits and requests, as in a Pod")
    if not all(isinstance(amounts, dict) for amounts in content.values()):
        raise ParametersError("data.resources.limits and .requests must be mappings, for example {cpu: 100m}")
    return {
        str(kind): {str(name): str(amount) for name, amount in amounts.items()}
        for kind, amounts in sorted(content.items())
    }
