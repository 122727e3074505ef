"""Annotations and labels of our own, on Namespaces, on Services and on workloads.

    meshwright.dev/permissive: "true"                        # Namespace: accept every client of the mesh
    meshwright.dev/egress-services: "books/*, default/shop"  # Namespace, Pod, Workload: services of its proxy
    meshwright.dev/escaped-slashes: keep                     # Service: treatment of %2F in a path
    meshwright.dev/interception-capture: tproxy              # Pod: how inbound connections are captured
    meshwright.dev/interception-ipv6: "false"                # Pod: let IPv6 bypass the sidecar
    meshwright.dev/inject: "true"                            # Pod, Namespace (a label too): add a sidecar
    meshwright.dev/overlays: "debug, large"                  # Pod, Namespace: overlays for the sidecar
    meshwright.dev/sidecar-placement: classic                # Pod: a regular container, no init container
    meshwright.dev/service: books                            # Pod: its primary service
    meshwright.dev/gateway: edge                             # Pod: the gateway that its sidecar serves
    meshwright.dev/proxy-uuid: 5b0c3ff1-...                  # Pod (a label): the UUID of its sidecar
    meshwright.dev/revision: canary                          # Pod, Namespace (a label): its control plane
    meshwright.dev/control-plane: meshwright-system          # our own objects (a label): their control plane

The values are text, as in Kubernetes. An invalid value refuses the object, except in the annotations and
labels that only the injector uses: there it is a warning (see `own_values`).
"""

from collections.abc import Iterable
from typing import Final

from meshwright.mesh.names import IpAddress, Namespace, ServiceName, is_dns_label
from meshwright.mesh.service import EscapedSlashes, Scope, ServicePattern
from meshwright.mesh.workload import Capture, Transparent
from meshwright.specs.fields import Fields

PERMISSIVE: Final = "meshwright.dev/permissive"
EGRESS_SERVICES: Final = "meshwright.dev/egress-services"
ESCAPED_SLASHES: Final = "meshwright.dev/escaped-slashes"
CAPTURE: Final = "meshwright.dev/interception-capture"
IPV6: Final = "meshwright.dev/interception-ipv6"
INJECT: Final = "meshwright.dev/inject"
OVERLAYS: Final = "meshwright.dev/overlays"
PLACEMENT: Final = "meshwright.dev/sidecar-placement"
REVISION: Final = "meshwright.dev/revision"
"""Label that selects one of several control planes; without the label, the default one is used."""
SERVICE_ANNOTATION: Final = "meshwright.dev/service"
"""Pod annotation with the primary service, if its name differs from the ServiceAccount's."""
GATEWAY_ANNOTATION: Final = "meshwright.dev/gateway"
"""Pod annotation with the name of the gateway in its namespace that its sidecar serves."""
UUID_LABELS: Final = ("meshwright.dev/proxy-uuid", "osm-proxy-uuid")
"""Pod labels with the sidecar's UUID; the first one present counts."""
OWN_UID: Final = "metadata.uid"
"""Label value for "the sidecar's UUID is the Pod's own UID", which the author of a Pod cannot know."""
HOME: Final = "meshwright.dev/control-plane"
"""Label of a control plane's own objects, with the namespace of this control plane."""

ANY: Final = "*"
NONE: Final = "none"

_EGRESS_RULE: Final = (
    "must be a comma-separated list of services as NAMESPACE/NAME, where either part may be *, "
    'for example "books/*, default/shop", or the word none'
)


def permissive(annotations: Fields) -> bool | None:
    """Return whether a namespace's workloads accept every client of the mesh; None without the annotation."""
    return _flag(annotations, PERMISSIVE)


def escaped_slashes(annotations: Fields) -> EscapedSlashes:
    """Return the treatment of requests with an escaped slash; refused without the annotation."""
    return EscapedSlashes(annotations.choice(ESCAPED_SLASHES, tuple(EscapedSlashes), EscapedSlashes.REJECT))


def interception(annotations: Fields, addresses: Iterable[IpAddress] = ()) -> Transparent:
    """Return how a Pod's traffic is captured: by default REDIRECT, and IPv6 if the Pod has IPv6 addresses.

    Both the rules in the Pod and the listeners of its proxy are made from this value. An application with an
    address of the other family would otherwise be open to everyone, because its connections would bypass the
    sidecar.
    """
    capture = annotations.choice(CAPTURE, tuple(Capture), Capture.REDIRECT)
    captured = captures_ipv6(annotations)
    return Transparent(
        Capture(capture), any(":" in address for address in addresses) if captured is None else captured
    )


def captures_ipv6(annotations: Fields) -> bool | None:
    """Return whether a Pod's IPv6 traffic is captured; None without the annotation: the addresses decide."""
    return _flag(annotations, IPV6)


def egress_services(annotations: Fields) -> Scope:
    """Return the services in a proxy's configuration by annotation, sorted; None without the annotation."""
    text = annotations.text(EGRESS_SERVICES, expected=_EGRESS_RULE)
    if text is None:
        return None
    if text.strip() == NONE:
        return ()
    patterns = tuple(map(_pattern, text.split(",")))
    known = {pattern for pattern in patterns if pattern is not None}
    # An invalid entry refuses the object; left out, it would silently shorten the list of services.
    if len(known) < len(set(patterns)):
        annotations.wrong(EGRESS_SERVICES, _EGRESS_RULE)
    return tuple(sorted(known, key=str))


def _flag(annotations: Fields, name: str) -> bool | None:
    match annotations.text(name):
        case None:
            return None
        case "true":
            return True
        case "false":
            return False
        case _:
            annotations.wrong(name, 'must be "true" or "false"')
            return None


def _pattern(text: str) -> ServicePattern | None:
    namespace, slash, name = text.strip().partition("/")
    if not slash or not all(item == ANY or is_dns_label(item) for item in (namespace, name)):
        return None
    return ServicePattern(
        None if namespace == ANY else Namespace(namespace), None if name == ANY else ServiceName(name)
    )
