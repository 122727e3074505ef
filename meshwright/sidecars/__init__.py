"""Sidecar drivers: each translates a ProxyPolicy for one kind of proxy, and serves the result.

- `contract` defines a driver (`contract.driver.SidecarDriver`), its inputs, and how it starts and ends.
- `registry` finds installed drivers by their entry points, and `contract.selection` chooses one for a
  workload.
- `lint` reports objects that need a capability which the workload's driver lacks.
- `injection` has the common part of all drivers' `patch` methods: a pod in, a pod with a sidecar out.
- `envoy` and `document` are drivers, one package for each kind of proxy.

A driver never decides policy: `catalog` does so, once for all kinds of proxies. Therefore a new kind of proxy
is a separate package, without changes in other files. Read `contract.driver` next, then
docs/extend/drivers.md.
"""
