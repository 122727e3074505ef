"""Gateways of the Gateway API: which are served here, their listeners, and the routes attached to these.

The one derivation for policy, status, lint and explain. The package does not know Envoy, and never decides
about requests: `catalog.policy` does.

- `classes`: whether a gateway is served here.
- `listener_sets`: the ListenerSets that a gateway allows.
- `namespaces`: namespaces that a gateway or a listener allows.
- `listeners`: verdicts about the listeners of a gateway.
- `certificates`: the certificates that a listener shows; `ca_certificates`: those that verify others.
- `client_certificates`: the certificate that a gateway shows to backends; `client_validation`: the CA
  certificates that verify a gateway's own clients.
- `route_listeners`: verdicts about routes whose parent is a gateway.
- `client_traffic`: the settings for the clients of listeners.
- `refusals`: why a listener refuses a route.
- `grants`: ReferenceGrants, and the references of routes as gateways may follow them.
- `states`, `set_states`: the state of a whole gateway or ListenerSet, for the status.
- `verdicts`: the values.
"""
