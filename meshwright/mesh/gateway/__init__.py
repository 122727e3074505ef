"""Routes of the Gateway API as values, in the form for the catalog, whatever their version.

- `routes`: HTTPRoute, GRPCRoute, TLSRoute and TCPRoute with their parents, and ReferenceGrant.
- `rules`: rules of routes, with matches, backends, timeouts and retries.
- `filters`: changes of requests and answers.
- `backend_tls`, `ca_bundles`: TLS from gateways to backends, and the CA certificates for it.
The package never reads a manifest (`meshwright.specs` does), or decides whether a route is in force or what
it does (`catalog` does). Continue with `routes`.
"""
