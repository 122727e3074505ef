"""Features of the Gateway API that Meshwright has, in the names of the conformance suite.

The conformance test of a mesh runs with CLAIMED, its report claims these features, and the status of an XMesh
has them. A feature belongs there only if the tests of the suite for it pass (`make conformance-gateway`).
GATEWAY_FEATURES are those of gateways, in the status of a GatewayClass: from there the suite takes them.
"""

from typing import Final

_REDIRECTS: Final = ("303", "307", "308")

GATEWAY_FEATURES: Final[tuple[str, ...]] = tuple(
    sorted(
        (
            "BackendTLSPolicy",
            "BackendTLSPolicySANValidation",
            "GRPCRoute",
            "GRPCRouteNamedRouteRule",
            "GRPCRouteRequestHeaderModifier",
            "Gateway",
            "GatewayAddressEmpty",
            "GatewayBackendClientCertificate",
            "GatewayFrontendClientCertificateValidation",
            "GatewayFrontendClientCertificateValidationInsecureFallback",
            "GatewayHTTPListenerIsolation",
            "GatewayHTTPSListenerDetectMisdirectedRequests",
            "GatewayInfrastructure",
            "GatewayPort8080",
            "GatewayRouteHostnameIntersectionPrecedence",
            "GatewayStaticAddresses",
            "HTTPRoute",
            "HTTPRouteBackendProtocolH2C",
            "HTTPRouteBackendProtocolWebSocket",
            "HTTPRouteBackendRequestHeaderModification",
            "HTTPRouteBackendTimeout",
            "HTTPRouteBackendURLRewrite",
            "HTTPRouteCORS",
            "HTTPRouteDestinationPortMatching",
            "HTTPRouteHostRewrite",
            "HTTPRouteMethodMatching",
            "HTTPRouteNamedRouteRule",
            "HTTPRouteParentRefPort",
            "HTTPRoutePathRedirect",
            "HTTPRoutePathRewrite",
            "HTTPRoutePortRedirect",
            "HTTPRouteQueryParamMatching",
            "HTTPRouteRequestMirror",
            "HTTPRouteRequestMultipleMirrors",
            "HTTPRouteRequestPercentageMirror",
            "HTTPRouteRequestTimeout",
            "HTTPRouteResponseHeaderModification",
            "HTTPRouteRetryCodes",
            "HTTPRouteRetryConnectionError",
            "HTTPRouteSchemeRedirect",
            "ListenerSet",
            "ReferenceGrant",
            "TCPRoute",
            "TLSRoute",
            "TLSRouteModeMixed",
            "TLSRouteModeTerminate",
            *(f"HTTPRoute{status}RedirectStatusCode" for status in _REDIRECTS),
        )
    )
)
"""Features of gateways, sorted; no feature of a mesh is among them."""

CORE: Final = ("GRPCRoute", "HTTPRoute", "Mesh")
"""Features of all tests in the profiles MESH-HTTP and MESH-GRPC."""

EXTENDED: Final = (
    "MeshClusterIPMatching",
    "MeshConsumerRoute",
    "MeshHTTPRouteBackendRequestHeaderModification",
    "MeshHTTPRouteNamedRouteRule",
    "MeshHTTPRouteQueryParamMatching",
    "MeshHTTPRouteRedirectPath",
    "MeshHTTPRouteRedirectPort",
    "MeshHTTPRouteRewritePath",
    "MeshHTTPRouteSchemeRedirect",
)
"""All extended features of these profiles."""

CLAIMED: Final = tuple(sorted((*CORE, *EXTENDED)))
"""The features that the conformance report claims, sorted as the specification demands."""
