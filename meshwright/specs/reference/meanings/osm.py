"""Meanings of the fields of Open Service Mesh's group config.openservicemesh.io, and of IngressBackend."""

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
    "sidecarName": Meaning("The driver's name, for example envoy."),
    "sidecarImage": Meaning(
        "The sidecar image of this driver, unless `spec.sidecar` has one.", "the server's setting"
    ),
    "sidecarWindowsImage": Meaning("The sidecar image on Windows.", "the server's setting"),
    "sidecarImageWindowsImage": Meaning("An older name of `sidecarWindowsImage`."),
    "initContainerImage": Meaning(
        "The image that sets up interception, unless `spec.sidecar` has one.", "the server's setting"
    ),
    "proxyServerPort": Meaning("The port of the server for this driver's sidecars.", "the driver's own"),
    "sidecarDisabledMTLS": Meaning(
        "Must be false, because mutual TLS cannot be disabled; true is ignored and is an error for lint."
    ),
}
_SIDECAR: Final[Meanings] = {
    "sidecarClass": Meaning("The sidecar driver of the mesh.", "`MESHWRIGHT_SIDECAR_CLASS`, else `envoy`"),
    "sidecarDrivers": Meaning("The drivers, with settings of their own."),
    **under("sidecarDrivers[]", _DRIVER),
    "logLevel": Meaning("The log level of sidecars."),
    "sidecarImage": Meaning("The sidecar image of the mesh's driver.", "the value of `envoyImage`"),
    "envoyImage": Meaning("An older name of `sidecarImage`."),
    "sidecarWindowsImage": Meaning("The sidecar image on Windows.", "the value of `envoyWindowsImage`"),
    "envoyWindowsImage": Meaning("An older name of `sidecarWindowsImage`."),
    "initContainerImage": Meaning("The image that sets up interception."),
    "tlsMinProtocolVersion": Meaning("The lowest TLS version of sidecars.", "`TLSv1_2`", TLS_VERSION),
    "tlsMaxProtocolVersion": Meaning("The highest TLS version of sidecars.", "`TLSv1_3`", TLS_VERSION),
    "cipherSuites": Meaning(
        "The cipher suites of TLS 1.2; `[A|B]` has suites of equal preference.",
        "Envoy's default",
        CIPHER_SUITE,
    ),
    "ecdhCurves": Meaning("The elliptic curves, in order of preference.", "Envoy's default", CURVE),
}
_TRAFFIC: Final[Meanings] = {
    "enablePermissiveTrafficPolicyMode": Meaning("Whether all clients of the mesh may call all services."),
    "enableEgress": Meaning("Whether traffic may leave the mesh."),
    "inboundPortExclusionList": Meaning("Ports with inbound traffic that bypasses the sidecars of Pods."),
    "outboundPortExclusionList": Meaning("Ports with outbound traffic that bypasses the sidecars of Pods."),
    "outboundIPRangeInclusionList": Meaning(
        "Only traffic to these IP ranges is captured in Pods; an empty list means every address.",
        "every address",
        RANGE,
    ),
    "outboundIPRangeExclusionList": Meaning(
        "Traffic to these IP ranges bypasses the sidecars of Pods.", form=RANGE
    ),
    "networkInterfaceExclusionList": Meaning(
        "Traffic through these network interfaces bypasses the sidecars of Pods.", form=NETWORK_INTERFACE
    ),
    "inboundExternalAuthorization": Meaning("The external authorizer for HTTP requests that policy allows."),
    "inboundExternalAuthorization.enable": Meaning(
        "Whether the authorizer is used; with false the other fields are ignored."
    ),
    "inboundExternalAuthorization.address": Meaning("The address of the authorizer.", form=HOST),
    "inboundExternalAuthorization.port": Meaning("The port of the authorizer, for gRPC in plain text."),
    "inboundExternalAuthorization.timeout": Meaning(
        "The timeout of an answer, from 1ms to 5m.", "`1s`", DURATION
    ),
    "inboundExternalAuthorization.failureModeAllow": Meaning(
        "Whether requests without an answer are allowed."
    ),
    "inboundExternalAuthorization.statPrefix": Meaning(
        "The prefix of the sidecars' statistics about the authorizer.", "`inboundExtAuthz`"
    ),
}

MESH_CONFIG: Final[Meanings] = {
    "metadata.creationTimestamp": Meaning(
        "The age; a MeshConfig named `osm-mesh-config` has precedence, then the oldest."
    ),
    "spec": Meaning("The settings of the mesh."),
    "spec.traffic": Meaning("The allowed traffic, and the traffic that sidecars capture."),
    **under("spec.traffic", _TRAFFIC),
    "spec.sidecar": Meaning("Settings for every sidecar."),
    **under("spec.sidecar", _SIDECAR),
    "spec.certificate": Meaning("The certificates of workloads and of the ingress gateway."),
    "spec.certificate.serviceCertValidityDuration": Meaning(
        "The validity of workloads' certificates, from 1s to 87600h.", "`24h`", DURATION
    ),
    "spec.certificate.ingressGateway": Meaning(
        "The certificate of the ingress gateway, written to a Secret and renewed."
    ),
    "spec.certificate.ingressGateway.subjectAltNames": Meaning(
        "The DNS names of the certificate, at least one; IngressBackends refer to them.", form=NAME
    ),
    "spec.certificate.ingressGateway.validityDuration": Meaning(
        "The validity of the certificate, from 1s to 87600h.", "`24h`", DURATION
    ),
    "spec.certificate.ingressGateway.secret": Meaning(
        "The Secret of type `kubernetes.io/tls`, with `tls.crt`, `tls.key`, and the roots as `ca.crt`."
    ),
    "spec.certificate.ingressGateway.secret.name": Meaning("The name of the Secret.", form=NAME),
    "spec.certificate.ingressGateway.secret.namespace": Meaning(
        "The namespace of the Secret.", "the MeshConfig's namespace", LABEL
    ),
    "spec.observability": Meaning("Observability of sidecars; only `tracing` is used."),
    "spec.observability.tracing": Meaning(
        "The tracing collector, which receives a span of each sampled request."
    ),
    "spec.observability.tracing.enable": Meaning(
        "Whether tracing is used; with false the other fields are ignored."
    ),
    "spec.observability.tracing.address": Meaning(
        "The address of the collector.", "`jaeger` in the MeshConfig's namespace", HOST
    ),
    "spec.observability.tracing.port": Meaning(
        "The port of the collector, in plain text.", "9411; 4317 for OTLP"
    ),
    "spec.observability.tracing.endpoint": Meaning(
        "The path of the collector, only for Zipkin.", "`/api/v2/spans`", PATH
    ),
    "spec.observability.tracing.protocol": Meaning(
        "The format of the spans; OTLP (OpenTelemetry) is sent over gRPC. This field is Meshwright's own.",
        "`Zipkin`",
        TRACING,
    ),
    "spec.featureFlags": Meaning("No effect."),
}

INGRESS_BACKEND: Final[Meanings] = {
    "metadata.creationTimestamp": Meaning(
        "The age; of several objects for one service and port, the oldest is in force."
    ),
    "spec": Meaning("The specification of the object."),
    "spec.backends": Meaning("The ports that clients may call; each port of a service only once."),
    "spec.backends[].name": Meaning("The service, in the object's namespace.", form=SERVICE),
    "spec.backends[].port": Meaning("The port of the service, and the protocol of clients."),
    "spec.backends[].port.number": Meaning("The target port of the service, where the application listens."),
    "spec.backends[].port.protocol": Meaning(
        "The protocol: `http` is plain text, `https` is TLS; in upper or lower case.", form=HTTP_OR_HTTPS
    ),
    "spec.backends[].tls": Meaning("Requirements for clients with TLS."),
    "spec.backends[].tls.skipClientCertValidation": Meaning(
        "Whether a client may lack a certificate; then only its address is checked."
    ),
    "spec.backends[].tls.sniHosts": Meaning(
        "Server names (SNI); a client must request one of them.", "any name, or none", SERVER_NAME
    ),
    "spec.sources": Meaning("The clients that may call the backends."),
    "spec.sources[].kind": Meaning(
        "The type of the source: endpoints of a Service, an IP range, or a name in the client's certificate."
    ),
    "spec.sources[].name": Meaning(
        "The name of the Service, the IP range such as 10.0.0.0/8, or the DNS name or URI in the certificate."
    ),
    "spec.sources[].namespace": Meaning("The namespace of the Service, required for a Service.", form=LABEL),
    "spec.matches": Meaning("Only requests that match these are allowed.", "every request"),
    "spec.matches[].apiGroup": Meaning("The API group.", "`specs.smi-spec.io`", ROUTE_GROUPS),
    "spec.matches[].kind": Meaning("The kind."),
    "spec.matches[].name": Meaning("The name of the HTTPRouteGroup, in the object's namespace.", form=NAME),
}

MESH_ROOT_CERTIFICATE: Final[Meanings] = {
    "metadata.creationTimestamp": Meaning(
        "The age; of more than two objects that are not inactive, the two oldest are used."
    ),
    "spec": Meaning("The specification of the object."),
    "spec.provider": Meaning("The CA; only `tresor`, others are named in settings."),
    "spec.provider.tresor": Meaning("The built-in CA."),
    "spec.provider.tresor.ca": Meaning("The certificate and key of the CA."),
    "spec.provider.tresor.ca.secretRef": Meaning(
        "The Secret with certificate and key, a folder of `root_secrets`; created if missing."
    ),
    "spec.provider.tresor.ca.secretRef.name": Meaning("The name of the Secret.", form=NAME),
    "spec.provider.tresor.ca.secretRef.namespace": Meaning(
        "The namespace of the Secret.", "the object's namespace", LABEL
    ),
    "spec.trustDomain": Meaning(
        "The trust domain; must be the trust domain of the mesh.",
        "the trust domain of the mesh",
        TRUST_DOMAIN,
    ),
    "spec.role": Meaning(
        "The role: `active` signs, `passive` is only trusted, `inactive` is not used.", "`active`"
    ),
    "spec.intent": Meaning("An older name of `role`.", "the value of `role`"),
    "spec.spiffeEnabled": Meaning("Whether certificates have SPIFFE IDs, which is always the case.", "true"),
}
