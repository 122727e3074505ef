"""Open Service Mesh's own kinds."""

from typing import Final

from meshwright.specs.reference.meaning import (
    CIPHER_SUITE,
    CURVE,
    DURATION,
    HOST,
    HTTP_OR_HTTPS,
    LABEL,
    NAME,
    NETWORK_INTERFACE,
    PATH,
    RANGE,
    ROUTE_GROUPS,
    SERVER_NAME,
    SERVICE,
    TLS_VERSION,
    TRACING,
    TRUST_DOMAIN,
    Meaning,
    Meanings,
    under,
)

_DRIVER: Final[Meanings] = {
    "sidecarName": Meaning("The driver's name, such as envoy."),
    "sidecarImage": Meaning(
        "Its image; for the mesh's driver, where `spec.sidecar` says none.", "the server's"
    ),
    "sidecarWindowsImage": Meaning("The same on Windows.", "the server's"),
    "sidecarImageWindowsImage": Meaning("An older name of `sidecarWindowsImage`."),
    "initContainerImage": Meaning("The image that sets up interception, in the same way.", "the server's"),
    "proxyServerPort": Meaning("Where its sidecars dial in.", "the driver's"),
    "sidecarDisabledMTLS": Meaning("Must be false: there is no mesh without mutual TLS, and it stays."),
}
_SIDECAR: Final[Meanings] = {
    "sidecarClass": Meaning("The mesh's sidecar driver.", "`MESHWRIGHT_SIDECAR_CLASS`, else `envoy`"),
    "sidecarDrivers": Meaning("Drivers, and what their sidecars have of their own."),
    **under("sidecarDrivers[]", _DRIVER),
    "logLevel": Meaning("How much sidecars log."),
    "sidecarImage": Meaning("The image of the mesh's driver.", "what `envoyImage` says"),
    "envoyImage": Meaning("An older name of `sidecarImage`."),
    "sidecarWindowsImage": Meaning("The same on Windows.", "what `envoyWindowsImage` says"),
    "envoyWindowsImage": Meaning("An older name of `sidecarWindowsImage`."),
    "initContainerImage": Meaning("The image that sets up interception."),
    "tlsMinProtocolVersion": Meaning("The oldest TLS that sidecars speak.", "`TLSv1_2`", TLS_VERSION),
    "tlsMaxProtocolVersion": Meaning("The newest TLS that sidecars speak.", "`TLSv1_3`", TLS_VERSION),
    "cipherSuites": Meaning(
        "Suites of TLS 1.2; several of equal preference as `[A|B]`.", "Envoy's", CIPHER_SUITE
    ),
    "ecdhCurves": Meaning("Elliptic curves in the order of preference.", "Envoy's", CURVE),
}
_TRAFFIC: Final[Meanings] = {
    "enablePermissiveTrafficPolicyMode": Meaning("Whether everybody in the mesh may call everybody."),
    "enableEgress": Meaning("Whether traffic may leave the mesh."),
    "inboundPortExclusionList": Meaning("Ports whose inbound traffic is not captured in pods."),
    "outboundPortExclusionList": Meaning("Ports whose outbound traffic is not captured in pods."),
    "outboundIPRangeInclusionList": Meaning(
        "Only traffic to these is captured in pods; none is every address.", "every address", RANGE
    ),
    "outboundIPRangeExclusionList": Meaning("Traffic to these is not captured in pods.", form=RANGE),
    "networkInterfaceExclusionList": Meaning(
        "Network interfaces by which nothing is captured in pods.", form=NETWORK_INTERFACE
    ),
    "inboundExternalAuthorization": Meaning("Who is asked about each HTTP request that policy admits."),
    "inboundExternalAuthorization.enable": Meaning("Whether it is asked; else nothing beside it is read."),
    "inboundExternalAuthorization.address": Meaning("Where it is.", form=HOST),
    "inboundExternalAuthorization.port": Meaning("Its port, for gRPC in plain text."),
    "inboundExternalAuthorization.timeout": Meaning(
        "How long its answer is waited for: 1ms to 5m.", "`1s`", DURATION
    ),
    "inboundExternalAuthorization.failureModeAllow": Meaning(
        "Whether requests pass that it does not answer."
    ),
    "inboundExternalAuthorization.statPrefix": Meaning(
        "How sidecars name their counters of it.", "`inboundExtAuthz`"
    ),
}

MESH_CONFIG: Final[Meanings] = {
    "metadata.creationTimestamp": Meaning(
        "Of several, none or all named `osm-mesh-config`, the oldest counts."
    ),
    "spec": Meaning("The mesh's settings."),
    "spec.traffic": Meaning("What traffic is allowed, and what of it is captured."),
    **under("spec.traffic", _TRAFFIC),
    "spec.sidecar": Meaning("What holds for every sidecar."),
    **under("spec.sidecar", _SIDECAR),
    "spec.certificate": Meaning("Certificates of workloads, and of the gateway before them."),
    "spec.certificate.serviceCertValidityDuration": Meaning(
        "How long they are valid: 1s to 87600h.", "`24h`", DURATION
    ),
    "spec.certificate.ingressGateway": Meaning("A gateway's certificate, written to a Secret and renewed."),
    "spec.certificate.ingressGateway.subjectAltNames": Meaning(
        "Its names, at least one, of which IngressBackends admit some.", form=NAME
    ),
    "spec.certificate.ingressGateway.validityDuration": Meaning(
        "How long it is valid: 1s to 87600h.", "`24h`", DURATION
    ),
    "spec.certificate.ingressGateway.secret": Meaning(
        "The Secret, of type `kubernetes.io/tls`: `tls.crt`, `tls.key` and the roots as `ca.crt`."
    ),
    "spec.certificate.ingressGateway.secret.name": Meaning("Its name.", form=NAME),
    "spec.certificate.ingressGateway.secret.namespace": Meaning("Its namespace.", "the MeshConfig's", LABEL),
    "spec.observability": Meaning("What sidecars tell; only `tracing` is used."),
    "spec.observability.tracing": Meaning("Where they send a span of each request that is sampled."),
    "spec.observability.tracing.enable": Meaning("Whether they do; else nothing beside it is read."),
    "spec.observability.tracing.address": Meaning(
        "Where the collector is.", "`jaeger` in the MeshConfig's namespace", HOST
    ),
    "spec.observability.tracing.port": Meaning("Its port, in plain text.", "9411; 4317 for OTLP"),
    "spec.observability.tracing.endpoint": Meaning(
        "The path there, for Zipkin's spans alone.", "`/api/v2/spans`", PATH
    ),
    "spec.observability.tracing.protocol": Meaning(
        "Whose spans it takes: a field of ours. OTLP is OpenTelemetry's, over gRPC.", "`Zipkin`", TRACING
    ),
    "spec.featureFlags": Meaning("Nothing in it is used."),
}

INGRESS_BACKEND: Final[Meanings] = {
    "metadata.creationTimestamp": Meaning("Of several for one service and port the oldest counts."),
    "spec": Meaning("What is said."),
    "spec.backends": Meaning("Which ports may be called; no service's port twice."),
    "spec.backends[].name": Meaning("A service of the object's namespace.", form=SERVICE),
    "spec.backends[].port": Meaning("Its port, and how it is called."),
    "spec.backends[].port.number": Meaning("The service's target port: where the application listens."),
    "spec.backends[].port.protocol": Meaning(
        "`http` is plain text, `https` TLS; in any case.", form=HTTP_OR_HTTPS
    ),
    "spec.backends[].tls": Meaning("What is asked of clients in TLS."),
    "spec.backends[].tls.skipClientCertValidation": Meaning(
        "Whether a client needs no certificate; its address is all that is looked at then."
    ),
    "spec.backends[].tls.sniHosts": Meaning(
        "Server names of which a client must ask for one.", "any, or none", SERVER_NAME
    ),
    "spec.sources": Meaning("Who may call them."),
    "spec.sources[].kind": Meaning(
        "Whether it is the endpoints of a Service, addresses, or a name in the client's certificate."
    ),
    "spec.sources[].name": Meaning(
        "The Service's name; the range, such as 10.0.0.0/8; the DNS name or URI in the certificate."
    ),
    "spec.sources[].namespace": Meaning("The Service's namespace, which it must have.", form=LABEL),
    "spec.matches": Meaning("Only requests that these admit are let in.", "every request"),
    "spec.matches[].apiGroup": Meaning("Of groups there is one.", "`specs.smi-spec.io`", ROUTE_GROUPS),
    "spec.matches[].kind": Meaning("Of kinds there is one."),
    "spec.matches[].name": Meaning("The HTTPRouteGroup's name, in the object's namespace.", form=NAME),
}

MESH_ROOT_CERTIFICATE: Final[Meanings] = {
    "metadata.creationTimestamp": Meaning("Of more than two that ask to be used the two oldest are."),
    "spec": Meaning("What is said."),
    "spec.provider": Meaning("Whose CA it is: `tresor` alone; settings name others."),
    "spec.provider.tresor": Meaning("The built-in CA."),
    "spec.provider.tresor.ca": Meaning("Its certificate and key."),
    "spec.provider.tresor.ca.secretRef": Meaning(
        "The Secret with them: a folder of `root_secrets`; where it is not there they are made."
    ),
    "spec.provider.tresor.ca.secretRef.name": Meaning("Its name.", form=NAME),
    "spec.provider.tresor.ca.secretRef.namespace": Meaning("Its namespace.", "the object's own", LABEL),
    "spec.trustDomain": Meaning("Must be the mesh's.", "the mesh's", TRUST_DOMAIN),
    "spec.role": Meaning(
        "`active` signs, `passive` is trusted and does not, `inactive` is neither.", "`active`"
    ),
    "spec.intent": Meaning("An older name of `role`.", "what `role` says"),
    "spec.spiffeEnabled": Meaning("Always so here.", "true"),
}
