"""GatewayClass v1 and v1beta1."""

from meshwright.mesh.gateway.gateways import GatewayClass
from meshwright.specs.gateway.forms import CONTROLLER, DESCRIPTION, generation_of, optional, required
from meshwright.specs.gateway.references import object_reference
from meshwright.specs.gateway.tolerance import close, unreported
from meshwright.specs.manifest import Manifest


def gateway_class(manifest: Manifest) -> GatewayClass:
    """Read a GatewayClass; the problems of a cluster's class are not reported."""
    spec = unreported(manifest.spec())
    parameters = spec.section("parametersRef")
    controller = required(spec, "controllerName", CONTROLLER)
    optional(spec, "description", DESCRIPTION)
    result = GatewayClass(
        manifest.key.name,
        controller,
        object_reference(parameters) if spec.has("parametersRef") else None,
        generation_of(manifest.metadata),
    )
    close(spec)
    return result
