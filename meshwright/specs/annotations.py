"""Annotations and labels of our own, on Namespaces, on Services and on what runs in them.

    meshwright.dev/permissive: "true"                        # Namespace: accept every client of the mesh
    meshwright.dev/egress-services: "books/*, default/shop"  # Namespace, Pod, Workload: be told of no more
    meshwright.dev/escaped-slashes: keep                     # Service: what becomes of %2F in a path
    meshwright.dev/interception-capture: tproxy              # Pod: how inbound connections are captured
    meshwright.dev/interception-ipv6: "false"                # Pod: let IPv6 go past the sidecar
    meshwright.dev/inject: "true"                            # Pod, Namespace (a label too): have a sidecar
    meshwright.dev/overlays: "debug, large"                  # Pod, Namespace: what is laid over the sidecar
    meshwright.dev/sidecar-placement: classic                # Pod: among the containers, not before them
    meshwright.dev/service: books                            # Pod: its primary service
    meshwright.dev/proxy-uuid: 5b0c3ff1-...                  # Pod (a label): the UUID of its sidecar
    meshwright.dev/revision: canary                          # Pod, Namespace (a label): who injects
    meshwright.dev/control-plane: meshwright-system          # what we keep (a label): whose it is

Their values are text, as Kubernetes has it; a value that is not understood refuses the object.
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
"""The label by which one of several control planes is chosen; without, it is the default one."""
SERVICE_ANNOTATION: Final = "meshwright.dev/service"
"""Pod annotation that names the primary service, where it is not called like the ServiceAccount."""
UUID_LABELS: Final = ("meshwright.dev/proxy-uuid", "osm-proxy-uuid")
"""Pod labels that hold the sidecar's UUID, the first one found counts."""
OWN_UID: Final = "metadata.uid"
"""The value of such a label by which the Pod's own UID is the sidecar's: who made the Pod did not know it."""
HOME: Final = "meshwright.dev/control-plane"
"""The label that says whose an object is, by the namespace of that control plane."""

ANY: Final = "*"
NONE: Final = "none"

_EGRESS_RULE: Final = (
    "must be a comma-separated list of services as NAMESPACE/NAME, where either part may be *, "
    'such as "books/*, default/shop", or the word none'
)


def permissive(annotations: Fields) -> bool | None:
    """Read whether a namespace's workloads accept every client of the mesh, None where it is not said."""
    return _flag(annotations, PERMISSIVE)


def escaped_slashes(annotations: Fields) -> EscapedSlashes:
    """Read what becomes of a Service's requests with an escaped slash: refused, where it is not said."""
    return EscapedSlashes(annotations.choice(ESCAPED_SLASHES, tuple(EscapedSlashes), EscapedSlashes.REJECT))


def interception(annotations: Fields, addresses: Iterable[IpAddress] = ()) -> Transparent:
    """Read how a pod's traffic is led through its proxy: by REDIRECT, and IPv6 if it has addresses of it.

    The rules in the pod, which go by its addresses too, and the listeners of its proxy are both made of it.
    An application that could be reached by the other family past its sidecar would be anybody's to call.
    """
    capture = annotations.choice(CAPTURE, tuple(Capture), Capture.REDIRECT)
    said = captures_ipv6(annotations)
    return Transparent(Capture(capture), any(":" in each for each in addresses) if said is None else said)


def captures_ipv6(annotations: Fields) -> bool | None:
    """Read whether a pod's IPv6 is led through its proxy; None where its addresses say it."""
    return _flag(annotations, IPV6)


def egress_services(annotations: Fields) -> Scope:
    """Read which services proxies are to be told of: sorted, each once; None where it is not said."""
    text = annotations.text(EGRESS_SERVICES, expected=_EGRESS_RULE)
    if text is None:
        return None
    if text.strip() == NONE:
        return ()
    found = tuple(map(_pattern, text.split(",")))
    known = {each for each in found if each is not None}
    if len(known) < len(set(found)):
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
    if not slash or not all(each == ANY or is_dns_label(each) for each in (namespace, name)):
        return None
    return ServicePattern(
        None if namespace == ANY else Namespace(namespace), None if name == ANY else ServiceName(name)
    )
