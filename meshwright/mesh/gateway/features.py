"""Features of the Gateway API that gateways of Meshwright have, in the words of its conformance suite.

The one list of them: the status of each GatewayClass repeats it. A feature, for example
`HTTPRouteCORS`, belongs here when its tests pass.
"""

from typing import Final

_REDIRECTS: Final = ("303", "307", "308")

GATEWAY_FEATURES: Final[tuple[str, ...]] = tuple(
    sorted(
        (
            "GRPCRoute",
            "GRPCRouteNamedRouteRule",
            "GRPCRouteRequestHeaderModifier",
            "Gateway",
            "GatewayHTTPListenerIsolation",
            "GatewayPort8080",
            "GatewayRouteHostnameIntersectionPrecedence",
            "GatewayStaticAddresses",
            "HTTPRoute",
            "HTTPRouteBackendRequestHeaderModification",
            "HTTPRouteBackendTimeout",
            "HTTPRouteBackendURLRewrite",
            "HTTPRouteCORS",
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
            "ReferenceGrant",
            "TCPRoute",
            "TLSRoute",
            *(f"HTTPRoute{status}RedirectStatusCode" for status in _REDIRECTS),
        )
    )
)
"""Names of the features, sorted; no feature of a mesh is among them."""
