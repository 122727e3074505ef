"""Readers of the Gateway API: HTTPRoute, GRPCRoute, TLSRoute, TCPRoute and ReferenceGrant.

The API server checks these kinds with the schema and the CEL rules of their CRDs. The readers refuse the same
manifests, because nothing else checks a manifest from a file. An object that the API server accepts is always
read: a rule that Meshwright cannot carry out is dropped, and the rest of the route applies. They never decide
whether a route is in force; `catalog` does.
- `routes`: the kinds of routes, and the reading rule by rule.
- `rules`: rules of each kind of route.
- `matches`, `filters`, `references`: the parts of rules.
- `grants`: ReferenceGrant.
"""
