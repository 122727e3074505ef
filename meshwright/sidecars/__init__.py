"""Sidecar drivers: each translates a ProxyPolicy into the configuration of one kind of proxy, and serves it.

- `contract` defines a driver (`contract.driver.SidecarDriver`), its inputs, and how it starts and ends.
- `registry` finds installed drivers by their entry points, and `contract.selection` chooses one for a
  workload.
- `lint` reports objects that need a capability which the workload's driver lacks.
- `injection` has everything that the `patch` methods of all drivers share: a pod in, a pod with a sidecar
  out.
- `envoy` and `document` are drivers, one package for each kind of proxy.

A driver never decides policy: that is done in `catalog`, once for all kinds of proxies. Therefore a new kind
of proxy is a package of its own, and no other file changes. Read `contract.driver` next, then
docs/drivers.md.
"""
