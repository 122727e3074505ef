"""Readers of the Gateway API: gateways, their classes and ListenerSets, four kinds of routes, and grants.

The API server checks these kinds with the schema and the CEL rules of their CRDs. The readers refuse the same
manifests, because nothing else checks a manifest from a file. An object that the API server accepts is always
read: a rule or a listener that Meshwright cannot carry out is dropped, and the rest of the object applies.
They never decide whether a route or a gateway is in force; `catalog` does.
- `routes`: the kinds of routes, and the reading rule by rule.
- `rules`: rules of each kind of route.
- `matches`, `filters`, `references`: the parts of rules.
- `grants`: ReferenceGrant.
- `gateways`, `classes`: Gateway with ListenerSet, and GatewayClass; `listeners`, `selectors`, `gateway_tls`:
  the parts of these.
- `backends`: BackendTLSPolicy.
- `tolerance`: the treatment of errors in gateways that an API server has accepted.
"""
