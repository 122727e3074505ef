"""Who may reach whom, through what, with which identity: functions of one view and of nothing else.

    objects, workloads, settings -> View -> ProxyPolicy (mesh words, one per group of like proxies)

What is made of what, from the objects in the view (in brackets) up to that policy; each word is a module:

    [Service], [Workload], [EndpointSlice] -> workloads
    [Workload], [Namespace], workloads -> groups -> scope
    [Workload], workloads, ports -> conflicts
    [EndpointSlice], workloads, ports -> endpoints -> readiness
    [Service] -> addresses
    [Namespace], [MeshConfig] -> permissive
    [TrafficTarget], [HTTPRouteGroup], [TCPRoute], permissive -> access
    [TrafficSplit], [HTTPRouteGroup] -> splits
    [UpstreamTrafficSetting] -> limits
    groups, conflicts, access, limits -> inbound
    addresses, endpoints, access, splits, upstreams -> outbound
    outbound, permissive, readiness, limits, upstreams -> destinations
    [Retry] -> retries
    [RoutePolicy], access -> routing
    [UpstreamPolicy] -> upstreams
    [ExternalAuthorization] -> authorization
    [MutualTLS], ingress, permissive -> mutual_tls
    groups, scope, conflicts, permissive, outbound, destinations, retries, routing -> reachable
    workloads -> membership -> unreachable
    addresses -> unreachable
    inbound, reachable, unreachable -> group_policy

It will never read a manifest, keep a key, wait, read a clock, or know what kind of proxy obeys.
"""
