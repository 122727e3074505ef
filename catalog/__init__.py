"""Derivation of policy from the objects of a mesh: which workload may call which, how, and as which identity.

    objects, workloads, settings -> View -> ProxyPolicy (in mesh terms, one for each group of equal proxies)

The diagram shows the modules from the objects in the view (in brackets) to the policy. An arrow means that
the right module imports the left one:

    [Service], [Workload], [EndpointSlice] -> workloads
    [Workload], [Namespace], workloads -> groups -> scope
    [Workload], workloads, ports -> conflicts
    [EndpointSlice], workloads, ports -> endpoints -> readiness
    [Service] -> addresses
    [Namespace], [MeshConfig] -> permissive
    [TrafficTarget], [HTTPRouteGroup], [TCPRoute], permissive -> access
    [TrafficSplit], [HTTPRouteGroup], access -> splits
    [HTTPRoute], [GRPCRoute], [TLSRoute], [Service] -> attachment -> route_reach -> route_table
    references, gateway_precedence, outbound -> gateway_routes -> route_table
    [UpstreamTrafficSetting] -> limits
    groups, conflicts, access, limits -> inbound
    addresses, endpoints, access, splits -> outbound
    outbound, permissive, readiness, limits, upstreams -> destinations
    [Retry] -> retries
    [RoutePolicy], access -> routing
    outbound, splits, routing, upstreams, permissive -> route_table
    [UpstreamPolicy] -> upstreams
    [ExternalAuthorization] -> authorization
    [MutualTLS], ingress, permissive -> mutual_tls
    groups, scope, conflicts, destinations, retries, route_table -> local_addresses -> reachable
    groups, scope, permissive, outbound, destinations, retries, route_table -> reachable
    workloads -> membership -> unreachable
    addresses -> unreachable
    inbound, reachable, unreachable -> group_policy

Every result is a function of the view. The package never reads a manifest, keeps a key, waits, reads a clock,
or knows which kind of proxy enforces the policy.
"""
