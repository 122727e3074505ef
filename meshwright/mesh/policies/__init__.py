"""Policies as values: of SMI, of Open Service Mesh, and our own.

One type per kind of object, in the form for the catalog: older versions of a kind are already converted,
names are in lower case and sequences sorted where the order has no meaning.
- `smi`: access and traffic splits. `callers`, `ingress`, `egress`: clients and hosts outside the mesh.
- `mutual_tls`, `authorization`, `roots`: security.
- `routing`, `retries`, `upstreams`, `limits`, `rate_services`, `resilience`: treatment of calls.
- `telemetry`: access logs and traces.
The package never reads a manifest (`meshwright.specs` does), or decides the effect of a policy (`catalog`
does). Continue with `smi`.
"""
