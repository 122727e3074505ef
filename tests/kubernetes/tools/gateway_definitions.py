"""The Gateway API's definitions, from the real parts."""

from typing import Any

from tests.tools import libyaml
from tools.real_parts.building import shared
from tools.real_parts.parts import GATEWAY_DEFINITIONS, GATEWAY_EXPERIMENTS

KINDS = (
    "gatewayclasses",
    "gateways",
    "listenersets",
    "backendtlspolicies",
    "httproutes",
    "grpcroutes",
    "tlsroutes",
    "tcproutes",
    "referencegrants",
)


def definition(plural: str) -> dict[str, Any]:
    """Return the CustomResourceDefinition of a kind of the standard channel, for example of `httproutes`."""
    file = shared(GATEWAY_DEFINITIONS) / f"gateway.networking.k8s.io_{plural}.yaml"
    return dict(libyaml.load(file.read_text("utf-8")))


def mesh_definition() -> dict[str, Any]:
    """Return the CustomResourceDefinition of XMesh, which is experimental."""
    file = shared(GATEWAY_EXPERIMENTS) / "gateway.networking.x-k8s.io_xmeshes.yaml"
    return dict(libyaml.load(file.read_text("utf-8")))
