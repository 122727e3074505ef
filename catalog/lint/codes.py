"""Stable codes of problems between several objects, each valid by itself."""

from meshwright.mesh.problems.codes import ProblemCode


class Code(ProblemCode):
    """Stable code of a problem with its meaning in one line, `doc`; the catalog has MW20xx and MW21xx."""

    UNKNOWN_ROUTE = "MW2001", "A TrafficTarget's rule names a missing or invalid route object."
    UNKNOWN_MATCH = "MW2002", "A TrafficTarget's rule names a match that is missing in the HTTPRouteGroup."
    NO_RULES = "MW2003", "A TrafficTarget without rules does not admit requests."
    ALL_REFUSED = (
        "MW2004",
        "A TrafficTarget without a rule in force does not admit requests.",
    )
    FOREIGN_DESTINATION = (
        "MW2005",
        "A TrafficTarget in another namespace than its destination is not in force.",
    )
    NO_SOURCES = "MW2006", "A TrafficTarget without sources does not admit callers."
    UNKNOWN_DESTINATION = (
        "MW2007",
        "The destination of a TrafficTarget is a ServiceAccount without workloads.",
    )
    UNKNOWN_SOURCES = (
        "MW2008",
        "All sources of a TrafficTarget are ServiceAccounts without workloads.",
    )
    SOURCE_NAMESPACE = (
        "MW2009",
        (
            "A source of a TrafficTarget belongs to no workload, but another namespace has a "
            "ServiceAccount of this name."
        ),
    )
    UNKNOWN_APEX = (
        "MW2010",
        "A TrafficSplit's apex is not a Service of its namespace; the TrafficSplit is not in force.",
    )
    UNKNOWN_BACKEND = (
        "MW2011",
        "A backend of a TrafficSplit does not exist and is left out of the split.",
    )
    ZERO_WEIGHTS = (
        "MW2012",
        "All weights of a TrafficSplit's existing backends are 0; the TrafficSplit is not in force.",
    )
    EXCESSIVE_WEIGHTS = (
        "MW2013",
        "The weights of a TrafficSplit add up to more than 2^32 - 1; the TrafficSplit is not in force.",
    )
    UNKNOWN_SPLIT_MATCH = (
        "MW2014",
        "A TrafficSplit names a missing HTTPRouteGroup, or one without matches.",
    )
    OVERRULED_SPLIT = "MW2015", "Another TrafficSplit on the same apex takes precedence."
    BACKEND_PORT = (
        "MW2016",
        "A backend of a TrafficSplit lacks a port of the apex and is left out of the split at that port.",
    )
    BACKEND_NOT_ALLOWED = (
        "MW2017",
        "Clients may call the apex or other backends of a TrafficSplit, but not this backend.",
    )
    SHADOWED_SPLIT = (
        "MW2018",
        "Other TrafficSplits that take precedence decide every request of this TrafficSplit.",
    )
    NO_ENDPOINTS = "MW2020", "A Service, or one of its ports, lacks endpoints."
    OUTSIDE_MESH = (
        "MW2021",
        "An endpoint without a known sidecar cannot use mutual TLS, so the endpoint does not get calls.",
    )
    SHARED_ADDRESS = (
        "MW2022",
        "Two Services have the same address and port, so sidecars cannot tell them apart.",
    )
    PROTOCOLS_DIFFER = "MW2023", "Services declare different protocols for one port of a workload."
    PROTOCOL_GUESSED = "MW2024", "The protocol of a port is not declared, so the port is treated as HTTP."
    TEMPLATES_ONLY = "MW2025", "A Service selects Pods of a controller, but these Pods are not known yet."
    PROTOCOL_OVERRULED = (
        "MW2026",
        (
            "An older Service, or the workload, declares another protocol for a port; calls to this "
            "Service fail."
        ),
    )
    SERVICE_FIELD_WITHOUT_EFFECT = "MW2027", "A Service has a field that kube-proxy uses and sidecars ignore."
    UNKNOWN_PRIMARY = (
        "MW2030",
        "The primary Service of a workload does not exist, and other Services do not select the workload.",
    )
    UUID_TWICE = (
        "MW2031",
        "Two workloads of a namespace share a proxy UUID; the ready workload gets the proxy, else the older.",
    )
    LISTENER_CONFLICT = (
        "MW2032",
        "Two explicit listeners share an address and port; within a namespace the younger one is left out.",
    )
    UNKNOWN_UPSTREAM = "MW2033", "A workload's upstream names a missing Service or port."
    UNKNOWN_EGRESS = "MW2034", "A proxy's list of known Services names a missing Service."
    SEVERAL_CONFIGS = "MW2040", "There is more than one MeshConfig; only one is in force."
    PLAIN_TEXT_SERVER = (
        "MW2041",
        "Sidecars call a server in plain text, but the server's sidecar refuses plain text.",
    )
    DUPLICATE_MATCH = "MW2050", "Two matches of an HTTPRouteGroup are the same but for their names."
    SHADOWED_MATCH = (
        "MW2051",
        "Another match of the same TrafficTarget admits every request that this match admits.",
    )
    UNSEEN_HEADER = "MW2052", "A match tests a header that a sidecar removes or sets."
    WIDE_OPEN = "MW2053", "A TrafficTarget admits every request on every port to its sources."
    EVERYBODY = "MW2054", "The sources of a TrafficTarget are all other ServiceAccounts of the mesh."
    NO_PORT = "MW2055", "A TrafficTarget's rules do not fit any target port of its destination."
    DUPLICATE_TARGET = "MW2056", "Another TrafficTarget with the same rules admits all sources of this one."
    UNFIT_PATH = (
        "MW2057",
        "A match's path expression never fits, because paths begin with a slash and are normalised.",
    )
    OPENS_HTTP = (
        "MW2058",
        (
            "A TCPRoute admits every HTTP request, although another TrafficTarget limits its source to "
            "some requests."
        ),
    )
    UNSENT_HOST = "MW2059", "A match tests for a host that usual clients do not send."
    UNKNOWN_INGRESS_BACKEND = (
        "MW2060",
        "A backend of an IngressBackend is not a Service of the namespace; callers are not admitted there.",
    )
    INGRESS_PORT = "MW2061", "An IngressBackend names a port that is not a target port of the Service."
    INGRESS_NOT_HTTP = (
        "MW2062",
        "An IngressBackend names a port without HTTP; callers are not admitted there.",
    )
    UNKNOWN_INGRESS_SOURCE = (
        "MW2063",
        "A source of an IngressBackend is a missing Service, or a Service without known addresses.",
    )
    UNKNOWN_INGRESS_MATCH = "MW2064", "An IngressBackend names a missing HTTPRouteGroup."
    OVERRULED_INGRESS = "MW2065", "Another IngressBackend for the same Service and port takes precedence."
    EGRESS_MATCH = "MW2070", "An Egress names a missing HTTPRouteGroup, or one without matches."
    EGRESS_TO_MESH = (
        "MW2071",
        "An Egress names a host or an address of a Service of the mesh; the entry is ignored.",
    )
    EGRESS_SOURCES = "MW2072", "All sources of an Egress are ServiceAccounts without workloads."
    EGRESS_OVERRULED = (
        "MW2073",
        (
            "Sidecars cannot look at the hosts of an Egress, because the same port admits all "
            "connections or its servers speak first."
        ),
    )
    EGRESS_EXPLICIT = (
        "MW2074",
        "An Egress is for a workload with explicit interception, whose other calls bypass the sidecar.",
    )
    EGRESS_LIMITS = (
        "MW2075",
        "An Egress names an UpstreamTrafficSetting that is missing, or without effect on the hosts.",
    )
    UNKNOWN_HOST = "MW2080", "An UpstreamTrafficSetting's host is not a Service; the object is not in force."
    FOREIGN_HOST = (
        "MW2081",
        "An UpstreamTrafficSetting for a Service of another namespace is not in force.",
    )
    OVERRULED_SETTING = "MW2082", "Another UpstreamTrafficSetting for the same host takes precedence."
    RATE_OF_NO_REQUESTS = (
        "MW2083",
        "An UpstreamTrafficSetting limits requests to a Service without an HTTP port.",
    )
    RATES_DIFFER = (
        "MW2084",
        "Two UpstreamTrafficSettings limit one port of a workload; one takes precedence there.",
    )
    NO_LIMITS = "MW2085", "An UpstreamTrafficSetting lacks limits, or has only unsupported ones."
    UNKNOWN_RETRY_SOURCE = "MW2086", "The source of a Retry is a ServiceAccount without workloads."
    UNKNOWN_RETRY_DESTINATION = "MW2087", "A Retry's destination is not a Service."
    OVERRULED_RETRY = "MW2088", "Another Retry with the same source and destination takes precedence."
    RETRY_OF_NO_REQUESTS = "MW2089", "A Retry's destination lacks an HTTP port."
    FOREIGN_TRUST_DOMAIN = "MW2095", "A MeshRootCertificate for another trust domain is not in force."
    THIRD_ROOT = "MW2096", "Two other MeshRootCertificates are in use, so this one is not in force."
    NO_ACTIVE_ROOT = (
        "MW2097",
        "All MeshRootCertificates in use are passive or inactive; the current CA stays in force.",
    )
    UNKNOWN_COLLECTOR = (
        "MW2100",
        "A Telemetry's ExtensionService does not exist or is invalid; access logs are not exported.",
    )
    SELECTS_NOBODY = "MW2101", "A Telemetry's selector does not match any workload of the namespace."
    SHADOWED_TELEMETRY = (
        "MW2102",
        "Other Telemetry objects with the same selector take precedence for all values of this one.",
    )
    LOGS_CREDENTIALS = "MW2103", "A Telemetry logs headers with credentials of callers."
    UNKNOWN_ROUTED_SERVICE = "MW2110", "A RoutePolicy's service does not exist."
    OVERRULED_ROUTE_POLICY = "MW2111", "Another RoutePolicy for the same Service takes precedence."
    ROUTES_NO_REQUESTS = "MW2112", "A RoutePolicy's Service lacks an HTTP port."
    UNKNOWN_ROUTE_MATCH = (
        "MW2113",
        "A RoutePolicy's rule names a missing HTTPRouteGroup or match.",
    )
    ROUTE_RULE_NOT_ASKED = (
        "MW2114",
        "A RoutePolicy's rule never applies, because a rule before it applies to all requests.",
    )
    NO_MIRROR = "MW2115", "A RoutePolicy's mirror does not exist, is headless, or lacks the port for copies."
    UNKNOWN_UPSTREAM_SERVICE = "MW2120", "An UpstreamPolicy's service does not exist."
    OVERRULED_UPSTREAM_POLICY = "MW2121", "Another UpstreamPolicy for the same Service takes precedence."
    HASHES_NOTHING = (
        "MW2122",
        "An UpstreamPolicy hashes requests, but a port of its Service does not speak HTTP.",
    )
    ASKS_NO_REQUESTS = (
        "MW2124",
        (
            "An UpstreamPolicy's health check uses HTTP or gRPC, but the Service lacks a port with this "
            "protocol."
        ),
    )
    HEALTH_NOT_ADMITTED = (
        "MW2125",
        "Policy denies an UpstreamPolicy's health check to callers of the Service.",
    )
    CALLED_BY_ADDRESS = (
        "MW2123",
        "An UpstreamPolicy's Service is headless, so callers choose the endpoints themselves.",
    )
    PLAIN_TEXT = (
        "MW2130",
        "A MutualTLS admits callers without a certificate; the problem lists the callers and ports.",
    )
    OVERRULED_MUTUAL_TLS = "MW2131", "Another MutualTLS for the same workloads and ports takes precedence."
    UNKNOWN_TLS_ACCOUNT = "MW2132", "A MutualTLS selects a ServiceAccount without workloads."
    UNKNOWN_TLS_PORT = "MW2133", "A MutualTLS names a port that is not a target port of the workloads."
    NOBODY_IN_PLAIN_TEXT = (
        "MW2134",
        (
            "A Permissive MutualTLS without a list of plain-text callers does not admit them outside "
            "permissive mode."
        ),
    )
    UNKNOWN_PLAIN_SOURCE = (
        "MW2135",
        "A source of a MutualTLS is a missing Service, or a Service without known addresses.",
    )
    UNKNOWN_PLAIN_MATCH = "MW2136", "A MutualTLS names a missing HTTPRouteGroup."
    PLAIN_SERVER_FIRST = "MW2137", "A MutualTLS admits plain text at a port whose servers speak first."
    NO_WAY_TO_SIDECAR = (
        "MW2140",
        "A workload has only IPv6 addresses, but the sidecar accepts only IPv4 connections.",
    )
    PAST_SIDECAR = "MW2141", "A workload has an IPv6 address, but the sidecar accepts only IPv4 connections."
    OVERRULED_AUTHORIZATION = (
        "MW2150",
        "Another ExternalAuthorization for the same workloads and ports takes precedence.",
    )
    UNKNOWN_ASKING_ACCOUNT = (
        "MW2151",
        "An ExternalAuthorization selects a ServiceAccount without workloads.",
    )
    UNKNOWN_ASKING_PORT = (
        "MW2152",
        "An ExternalAuthorization names a port that is not a target port of the workloads.",
    )
    NOT_ASKED_ABOUT = (
        "MW2153",
        "An ExternalAuthorization names a port without HTTP; sidecars do not ask the authorizer there.",
    )
    UNKNOWN_AUTHORIZER = (
        "MW2154",
        (
            "An ExternalAuthorization's ExtensionService does not exist or is invalid, so the authorizer "
            "cannot answer."
        ),
    )
    FITS_NO_CERTIFICATE = (
        "MW2042",
        "The cipher suites or curves of a MeshConfig do not work with the keys of service certificates.",
    )
    ROUTE_NOT_ACCEPTED = (
        "MW2170",
        "A parent of a Gateway API route is refused; the route is not in force there.",
    )
    UNRESOLVED_REFERENCE = (
        "MW2171",
        "A reference of a Gateway API route leads nowhere; its share of the requests gets an error.",
    )
    HIDDEN_MATCH = (
        "MW2172",
        "A match of a Gateway API route never applies, because an equal match takes precedence.",
    )
    HOSTNAMES_IN_MESH = (
        "MW2173",
        "Hostnames of a Gateway API route have no effect where the parent is a Service.",
    )
    OUT_OF_FORCE_BY_ROUTE = (
        "MW2174",
        "A TrafficSplit or RoutePolicy has no effect at a port with a Gateway API route.",
    )
    SHARE_DENIED = (
        "MW2175",
        "Clients may call the parent or other backends of a Gateway API route, but not this backend.",
    )
    REDIRECT_TO_ITSELF = (
        "MW2176",
        "A redirect of a Gateway API route leads to a location that the same rule redirects.",
    )
    UNKNOWN_GATEWAY_CLASS = (
        "MW2177",
        "The GatewayClass of a Gateway does not exist; the Gateway is not served.",
    )
    LISTENER_NOT_ACCEPTED = (
        "MW2178",
        "A listener of a Gateway is in a conflict, or has an unsupported protocol; it is not in force.",
    )
    UNFIT_ROUTE_KINDS = (
        "MW2179",
        "A listener of a Gateway allows kinds of routes that do not fit its protocol.",
    )
    UNKNOWN_GATEWAY = (
        "MW2180",
        "A workload serves a Gateway that does not exist, is refused, or has another controller.",
    )
    SHARED_GATEWAY_PORT = (
        "MW2181",
        "Two workloads with one address serve gateways at the same port.",
    )
    WITHOUT_REQUESTS = (
        "MW2182",
        (
            "A Gateway API route never gets a request at a Gateway: its listeners are not in force, or "
            "others answer in their place."
        ),
    )
    GATEWAY_DENIED = (
        "MW2183",
        "A Gateway's workload may not call a backend of a route; these requests are answered with 403.",
    )
    GATEWAY_FIELD_NOT_USED = (
        "MW2184",
        "A field of a Gateway has no effect, because Meshwright does not support the field.",
    )
    NO_CERTIFICATE = (
        "MW2185",
        "A Gateway or a listener refers to a certificate that cannot be used.",
    )
    UNKNOWN_PARENT_GATEWAY = (
        "MW2186",
        "A route or ListenerSet names a Gateway API parent that does not exist; it is not in force there.",
    )
    CERTIFICATE_OUT_OF_TIME = (
        "MW2187",
        "A certificate that a Gateway shows has expired, is not valid yet, or expires soon.",
    )
    CERTIFICATE_OF_OTHER_NAMES = (
        "MW2188",
        "The certificates of a Gateway's listener are for other names than the listener's hostname.",
    )
    MISSPELT_CONTROLLER = (
        "MW2189",
        "The controllerName of a GatewayClass is similar to Meshwright's, and names another controller.",
    )
    UNSUPPORTED_ADDRESS = (
        "MW2190",
        "A Gateway requests an address of an unsupported type, for example Hostname.",
    )
    ADDRESS_NOT_USABLE = (
        "MW2191",
        "A Gateway requests an address that its workloads do not have.",
    )
    UNSERVED_GATEWAY = (
        "MW2192",
        "No workload serves a Gateway; for a Gateway in a cluster this is not checked.",
    )
    PORT_OF_AGENT = (
        "MW2193",
        "A listener of a Gateway has the port of the agent's own server.",
    )
    SET_NOT_ATTACHED = (
        "MW2194",
        "A ListenerSet has a parent that does not allow the set; the listeners are not in force.",
    )
    TLS_WITHOUT_EFFECT = (
        "MW2198",
        "A part of spec.tls of a Gateway has no effect, for example at a port without TLS.",
    )
    INSECURE_CLIENTS = (
        "MW2199",
        "A Gateway validates clients, and admits them without a valid certificate too.",
    )
    BACKEND_TLS_TARGET = (
        "MW2161",
        "A BackendTLSPolicy has a target that does not exist, or is of another kind than Service.",
    )
    BACKEND_TLS_CONFLICT = (
        "MW2162",
        "An older BackendTLSPolicy decides about a target of a BackendTLSPolicy.",
    )
    BACKEND_TLS_AUTHORITY = (
        "MW2163",
        (
            "A BackendTLSPolicy lacks some or all of its CA certificates; without any, requests of Gateways "
            "to the targets fail."
        ),
    )
    BACKEND_TLS_UNUSED = (
        "MW2164",
        "Gateways lack a route to the targets of a BackendTLSPolicy; callers in the mesh ignore the policy.",
    )
    BACKEND_TLS_SIDECAR = (
        "MW2165",
        "A BackendTLSPolicy is for endpoints with a sidecar, which Gateways reach with the TLS of the mesh.",
    )
    UNKNOWN_CLIENT_TARGET = (
        "MW2155",
        "A ClientTrafficPolicy names a Gateway or a listener that does not exist; it is not in force there.",
    )
    OVERRULED_CLIENT_TRAFFIC = (
        "MW2156",
        "Another ClientTrafficPolicy has precedence at the same Gateway, listener or port.",
    )
    CLIENT_FIELD_NOT_USED = (
        "MW2157",
        "A field of a ClientTrafficPolicy is about requests, and its listeners only forward connections.",
    )
    PROXY_PROTOCOL_NOT_SENT = (
        "MW2158",
        "A ClientTrafficPolicy needs the PROXY protocol, and no annotation of the Gateway asks for it.",
    )
    NOT_LOOKED_FURTHER = (
        "MW2160",
        "A check of a large object stopped at the limit of the check; the object may have more problems.",
    )
