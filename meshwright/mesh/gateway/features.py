"""Features of the Gateway API for meshes that Meshwright supports, in the names of the conformance suite.

The conformance test runs with these features, its report claims them, and the status of an XMesh has them. A
feature belongs here only if the tests of the suite for it pass (`make conformance-gateway`).
"""

from typing import Final

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
