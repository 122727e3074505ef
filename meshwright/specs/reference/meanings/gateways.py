"""Meanings of the fields of the Gateway API's gateways, their classes and ListenerSets."""

from typing import Final

from meshwright.mesh.gateway.gateways import CONTROLLER_NAME
from meshwright.specs.gateway import forms
from meshwright.specs.reference.meaning import Form, Meaning, Meanings, under
from meshwright.specs.reference.meanings.gateway import (
    GROUP,
    HOSTNAME,
    KIND,
    NAME,
    NAMESPACE,
    SECTION,
    form_of,
)

_CONTROLLER: Final = form_of("domain and path", forms.CONTROLLER)
_DESCRIPTION: Final = form_of("text of at most 64 characters", forms.DESCRIPTION)
_PROTOCOL: Final = form_of("`HTTP`, `HTTPS`, `TLS`, `TCP` or another protocol", forms.PROTOCOL)
_ADDRESS_TYPE: Final = form_of("`IPAddress`, `Hostname` or another type", forms.ADDRESS_TYPE)
_ADDRESS: Final = form_of("address", forms.ADDRESS_VALUE)
_VALUE: Final = Form("text", {"type": "string"})

_GENERATION: Final[Meanings] = {
    "metadata.generation": Meaning("The number of changes; the status repeats it.")
}
_PARAMETERS: Final[Meanings] = {
    "group": Meaning("The API group; empty for the core group.", form=GROUP),
    "kind": Meaning("The kind.", form=KIND),
    "name": Meaning("The name.", form=NAME),
}
_SECRET: Final[Meanings] = {
    "group": Meaning("The API group; empty for a Secret.", "the empty group", GROUP),
    "kind": Meaning("The kind.", "`Secret`", KIND),
    "namespace": Meaning(
        "The namespace. Another namespace than the object's needs a ReferenceGrant.",
        "the object's namespace",
        NAMESPACE,
    ),
    "name": Meaning("The name.", form=NAME),
}
_NAMESPACES: Final[Meanings] = {
    "selector": Meaning("The selector of namespaces, for `Selector` alone.", "no namespace"),
    "selector.matchLabels": Meaning("Labels with their values, all of which a namespace must have."),
    "selector.matchExpressions": Meaning("Requirements, all of which a namespace must meet."),
    "selector.matchExpressions[].key": Meaning("The label."),
    "selector.matchExpressions[].operator": Meaning("`In`, `NotIn`, `Exists` or `DoesNotExist`."),
    "selector.matchExpressions[].values": Meaning("The values, for `In` and `NotIn`.", form=_VALUE),
}
_VALIDATION: Final[Meanings] = {
    "validation": Meaning("The check of client certificates.", "no check"),
    "validation.caCertificateRefs": Meaning("The ConfigMaps with CA certificates in `ca.crt`."),
    **under("validation.caCertificateRefs[]", _PARAMETERS),
    "validation.caCertificateRefs[].namespace": Meaning(
        "The namespace. Another namespace than the gateway's needs a ReferenceGrant.",
        "the gateway's namespace",
        NAMESPACE,
    ),
    "validation.mode": Meaning("Whether only clients with a valid certificate are admitted, or all clients."),
}
_LISTENERS: Final[Meanings] = {
    "spec.listeners": Meaning("The ports and host names that the gateway serves, at most 64."),
    "spec.listeners[].name": Meaning("The name, different in each listener.", form=SECTION),
    "spec.listeners[].port": Meaning("The port."),
    "spec.listeners[].protocol": Meaning(
        "The protocol. Another protocol is refused in the status of the listener.", form=_PROTOCOL
    ),
    "spec.listeners[].hostname": Meaning(
        "The host name of requests or the server name of TLS; absent for TCP.", "all names", HOSTNAME
    ),
    "spec.listeners[].tls": Meaning("TLS of clients; absent for HTTP and TCP.", "no TLS"),
    "spec.listeners[].tls.mode": Meaning("Whether the gateway ends TLS, or passes it on."),
    "spec.listeners[].tls.certificateRefs": Meaning(
        "The Secrets with the gateway's certificates, for `Terminate`."
    ),
    **under("spec.listeners[].tls.certificateRefs[]", _SECRET),
    "spec.listeners[].tls.options": Meaning("Options of other controllers. Ignored."),
    "spec.listeners[].allowedRoutes": Meaning("The routes that may attach."),
    "spec.listeners[].allowedRoutes.namespaces": Meaning("The namespaces of the routes."),
    "spec.listeners[].allowedRoutes.namespaces.from": Meaning(
        "Whether all namespaces, selected ones, or the object's."
    ),
    **under("spec.listeners[].allowedRoutes.namespaces", _NAMESPACES),
    "spec.listeners[].allowedRoutes.kinds": Meaning(
        "The kinds of the routes, at most 8.", "the kinds that fit the protocol"
    ),
    "spec.listeners[].allowedRoutes.kinds[].group": Meaning(
        "The API group.", "`gateway.networking.k8s.io`", GROUP
    ),
    "spec.listeners[].allowedRoutes.kinds[].kind": Meaning("The kind.", form=KIND),
}
_CLIENTS: Final[Meanings] = {
    "spec.tls": Meaning("Client certificates, for the gateway and of the gateway."),
    "spec.tls.frontend": Meaning("The check of client certificates at listeners that end TLS.", "no check"),
    "spec.tls.frontend.default": Meaning("The check at all ports that `perPort` does not name."),
    **under("spec.tls.frontend.default", _VALIDATION),
    "spec.tls.frontend.perPort": Meaning("Checks at single ports, at most 64."),
    "spec.tls.frontend.perPort[].port": Meaning("The port, different in each item."),
    "spec.tls.frontend.perPort[].tls": Meaning("The check at the port; an empty mapping checks nothing."),
    **under("spec.tls.frontend.perPort[].tls", _VALIDATION),
    "spec.tls.backend": Meaning("The gateway's certificate for backends with TLS."),
    "spec.tls.backend.clientCertificateRef": Meaning("The Secret with the certificate.", "no certificate"),
    **under("spec.tls.backend.clientCertificateRef", _SECRET),
}
GATEWAY: Final[Meanings] = {
    "metadata.creationTimestamp": Meaning("The age; of two conflicting gateways, the older one decides."),
    **_GENERATION,
    "metadata.uid": Meaning("The Gateway's UID; the objects that run its proxies have it as their owner's."),
    "spec": Meaning("The class and the listeners."),
    "spec.gatewayClassName": Meaning("The name of the GatewayClass.", form=NAME),
    **_LISTENERS,
    "spec.addresses": Meaning("The requested addresses, at most 16.", "any address"),
    "spec.addresses[].type": Meaning("The type of the address.", "`IPAddress`", _ADDRESS_TYPE),
    "spec.addresses[].value": Meaning("The address.", "any address of the type", _ADDRESS),
    "spec.infrastructure": Meaning("Properties of the objects that are made for the gateway."),
    "spec.infrastructure.labels": Meaning("Labels of the objects, at most 8."),
    "spec.infrastructure.annotations": Meaning("Annotations of the objects, at most 16."),
    "spec.infrastructure.parametersRef": Meaning("An object with parameters, in the gateway's namespace."),
    **under("spec.infrastructure.parametersRef", _PARAMETERS),
    "spec.allowedListeners": Meaning("The ListenerSets that may attach.", "none"),
    "spec.allowedListeners.namespaces": Meaning("The namespaces of the ListenerSets."),
    "spec.allowedListeners.namespaces.from": Meaning(
        "Whether no namespace, all, selected ones, or the gateway's own one."
    ),
    **under("spec.allowedListeners.namespaces", _NAMESPACES),
    **_CLIENTS,
}
LISTENER_SET: Final[Meanings] = {
    "metadata.creationTimestamp": Meaning("The age; of two conflicting sets, the older one decides."),
    **_GENERATION,
    "spec": Meaning("The gateway and the listeners."),
    "spec.parentRef": Meaning("The Gateway, which must allow the set in `allowedListeners`."),
    "spec.parentRef.group": Meaning("The API group.", "`gateway.networking.k8s.io`", GROUP),
    "spec.parentRef.kind": Meaning("The kind; the set takes effect for a Gateway alone.", "`Gateway`", KIND),
    "spec.parentRef.name": Meaning("The name.", form=NAME),
    "spec.parentRef.namespace": Meaning("The namespace.", "the set's namespace", NAMESPACE),
    **_LISTENERS,
}
GATEWAY_CLASS: Final[Meanings] = {
    **_GENERATION,
    "spec": Meaning("The controller."),
    "spec.controllerName": Meaning(
        f"The controller of the gateways of the class; Meshwright's is `{CONTROLLER_NAME}`.", form=_CONTROLLER
    ),
    "spec.description": Meaning("A description of the class.", form=_DESCRIPTION),
    "spec.parametersRef": Meaning("An object with parameters for all gateways of the class."),
    **under("spec.parametersRef", _PARAMETERS),
    "spec.parametersRef.namespace": Meaning(
        "The namespace; absent for a cluster-wide object.", "no namespace", NAMESPACE
    ),
}
