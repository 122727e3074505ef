"""Relations between objects, before any policy is read: services, workloads, endpoints, groups and scopes.

`backends/` finds the workloads and endpoints of a service, `groups` the proxies with equal configuration, and
`conflicts` listeners with the same address. `permissive`, `scope`, `membership` and `telemetry` find which
rules are for a namespace, service or workload. Decisions about calls are in `catalog.policy`. Read next:
`backends/workloads`, `groups`.

It never decides which client may call which server.
"""
