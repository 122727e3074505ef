"""The stable codes of what can be wrong between objects, each of which is right by itself."""

from meshwright.mesh.problems.codes import ProblemCode


class Code(ProblemCode):
    """A problem's stable code and, in `doc`, what it means in one line. MW20xx come from the catalog."""

    UNKNOWN_ROUTE = "MW2001", "A TrafficTarget's rule names a route object that does not exist."
    UNKNOWN_MATCH = "MW2002", "A TrafficTarget's rule names a match that its HTTPRouteGroup does not have."
    NO_RULES = "MW2003", "A TrafficTarget without rules admits nothing."
    ALL_REFUSED = "MW2004", "Every rule of a TrafficTarget is refused, so it admits nothing."
    FOREIGN_DESTINATION = "MW2005", "A TrafficTarget speaks for a destination of another namespace."
    NO_SOURCES = "MW2006", "A TrafficTarget without sources admits nobody."
    UNKNOWN_DESTINATION = "MW2007", "No workload has the destination of a TrafficTarget as its identity."
    UNKNOWN_SOURCES = "MW2008", "No workload has any of a TrafficTarget's sources as its identity."
    SOURCE_NAMESPACE = (
        "MW2009",
        "A TrafficTarget's source is nobody; one of that name is in another namespace.",
    )
    UNKNOWN_APEX = "MW2010", "A TrafficSplit's apex is no Service of its namespace; the split is refused."
    UNKNOWN_BACKEND = "MW2011", "A TrafficSplit's backend does not exist; it gets no share."
    ZERO_WEIGHTS = "MW2012", "The weights of a TrafficSplit's existing backends are all zero; it is refused."
    EXCESSIVE_WEIGHTS = "MW2013", "A TrafficSplit's weights add up to more than 32 bits hold; it is refused."
    UNKNOWN_SPLIT_MATCH = "MW2014", "A TrafficSplit names an unknown HTTPRouteGroup, or one that is empty."
    OVERRULED_SPLIT = "MW2015", "Another TrafficSplit on the same apex takes precedence."
    BACKEND_PORT = "MW2016", "A TrafficSplit's backend lacks a port of the apex; it gets no share there."
    BACKEND_NOT_ALLOWED = (
        "MW2017",
        "Clients may call a TrafficSplit's apex or other backends and not this one.",
    )
    SHADOWED_SPLIT = "MW2018", "Every request of a TrafficSplit is taken by others that take precedence."
    NO_ENDPOINTS = "MW2020", "Nothing that could be called stands behind a Service."
    OUTSIDE_MESH = "MW2021", "An endpoint has no sidecar that is known; it cannot do mTLS and gets no calls."
    SHARED_ADDRESS = "MW2022", "Two Services are called at one address and port and cannot be told apart."
    PROTOCOLS_DIFFER = (
        "MW2023",
        "Services disagree on what is spoken on one port of a workload.",
    )
    PROTOCOL_GUESSED = "MW2024", "Nothing says what a port speaks; it is taken for HTTP."
    TEMPLATES_ONLY = "MW2025", "Behind a Service is nobody yet but what a controller would make pods of."
    PROTOCOL_OVERRULED = (
        "MW2026",
        "An older Service, or the workload, has the port for another protocol; calls to this one fail.",
    )
    SERVICE_FIELD_WITHOUT_EFFECT = (
        "MW2027",
        "A Service has a field that kube-proxy obeys and sidecars do not.",
    )
    UNKNOWN_PRIMARY = (
        "MW2030",
        "The primary service that a workload names does not exist, and no other has it.",
    )
    UUID_TWICE = (
        "MW2031",
        "Two workloads of a namespace claim one proxy UUID; the ready one, else the older, has it.",
    )
    LISTENER_CONFLICT = (
        "MW2032",
        "Two explicit listeners share an address and port; of one namespace that of the younger is left out.",
    )
    UNKNOWN_UPSTREAM = "MW2033", "A workload's upstream names a Service or port that does not exist."
    UNKNOWN_EGRESS = "MW2034", "The services that a proxy is narrowed to are not all there."
    SEVERAL_CONFIGS = "MW2040", "There are several MeshConfigs; one counts."
    PLAIN_TEXT_SERVER = (
        "MW2041",
        "A server that sidecars ask or tell stands behind a sidecar, which refuses plain text.",
    )
    DUPLICATE_MATCH = "MW2050", "Two matches of an HTTPRouteGroup are the same but for their names."
    SHADOWED_MATCH = "MW2051", "A match admits nothing that another match of the same TrafficTarget does not."
    UNSEEN_HEADER = "MW2052", "A match asks for a header that ends at a sidecar or that a sidecar sets."
    WIDE_OPEN = "MW2053", "A TrafficTarget admits every request on every port to its sources."
    EVERYBODY = "MW2054", "A TrafficTarget's sources are all identities of the mesh."
    NO_PORT = "MW2055", "A TrafficTarget's rules fit no port at which its destination is called."
    DUPLICATE_TARGET = "MW2056", "A TrafficTarget admits nothing that another with the same rules does not."
    UNFIT_PATH = (
        "MW2057",
        "A match's path expression fits no path: paths begin with a slash, and arrive normalised.",
    )
    OPENS_HTTP = (
        "MW2058",
        "A TCPRoute admits every HTTP request where another TrafficTarget admits its source only some.",
    )
    UNSENT_HOST = "MW2059", "A match asks for a host that no usual client sends."
    UNKNOWN_INGRESS_BACKEND = (
        "MW2060",
        "An IngressBackend's backend is no Service of its namespace; nobody is admitted by it.",
    )
    INGRESS_PORT = "MW2061", "An IngressBackend names a port that is no target port of its Service."
    INGRESS_NOT_HTTP = (
        "MW2062",
        "An IngressBackend is for a port that speaks no HTTP; nobody is admitted there.",
    )
    UNKNOWN_INGRESS_SOURCE = (
        "MW2063",
        "Nobody stands behind a Service that an IngressBackend has as a source.",
    )
    UNKNOWN_INGRESS_MATCH = "MW2064", "An IngressBackend names an HTTPRouteGroup that does not exist."
    OVERRULED_INGRESS = "MW2065", "Another IngressBackend for the same service and port takes precedence."
    EGRESS_MATCH = "MW2070", "An Egress names an unknown HTTPRouteGroup, or one that is empty."
    EGRESS_TO_MESH = (
        "MW2071",
        "An Egress names a host or an address that is a Service's of the mesh; it stays the mesh's.",
    )
    EGRESS_SOURCES = "MW2072", "No workload has any of an Egress's sources as its identity."
    EGRESS_OVERRULED = (
        "MW2073",
        "An Egress's hosts are not looked at where all connections pass, or where servers speak first.",
    )
    EGRESS_EXPLICIT = (
        "MW2074",
        "An Egress is for a workload in explicit interception, whose calls do not come to its sidecar.",
    )
    EGRESS_LIMITS = (
        "MW2075",
        "An Egress names an UpstreamTrafficSetting that is not there, or that is for none of its hosts.",
    )
    UNKNOWN_HOST = "MW2080", "An UpstreamTrafficSetting's host is no Service; it has no effect."
    FOREIGN_HOST = "MW2081", "An UpstreamTrafficSetting is for a Service of another namespace; it is refused."
    OVERRULED_SETTING = "MW2082", "Another UpstreamTrafficSetting for the same host takes precedence."
    RATE_OF_NO_REQUESTS = "MW2083", "An UpstreamTrafficSetting limits requests where no port speaks HTTP."
    RATES_DIFFER = "MW2084", "Two UpstreamTrafficSettings limit one port of a workload; one counts there."
    NO_LIMITS = "MW2085", "An UpstreamTrafficSetting says no limit that is known."
    UNKNOWN_RETRY_SOURCE = "MW2086", "No workload has a Retry's source as its identity."
    UNKNOWN_RETRY_DESTINATION = "MW2087", "A Retry's destination is no Service."
    OVERRULED_RETRY = "MW2088", "Another Retry of the same source is for the same destination."
    RETRY_OF_NO_REQUESTS = "MW2089", "A Retry's destination has no port that speaks HTTP."
    FOREIGN_TRUST_DOMAIN = "MW2095", "A MeshRootCertificate is for another trust domain; it is refused."
    THIRD_ROOT = "MW2096", "Two other MeshRootCertificates are in use; it is not in force."
    NO_ACTIVE_ROOT = "MW2097", "No MeshRootCertificate in use is active; the CA in force stays."
    UNKNOWN_COLLECTOR = "MW2100", "A Telemetry's ExtensionService is not there; nobody is told."
    SELECTS_NOBODY = "MW2101", "No workload of its namespace has the labels of a Telemetry's selector."
    SHADOWED_TELEMETRY = "MW2102", "Others of its namespace decide all that a Telemetry says."
    LOGS_CREDENTIALS = "MW2103", "A Telemetry has headers logged in which callers show secrets."
    UNKNOWN_ROUTED_SERVICE = "MW2110", "A RoutePolicy's service is no Service."
    OVERRULED_ROUTE_POLICY = "MW2111", "Another RoutePolicy of the same service counts."
    ROUTES_NO_REQUESTS = "MW2112", "A RoutePolicy's service has no port that speaks HTTP."
    UNKNOWN_ROUTE_MATCH = "MW2113", "A RoutePolicy's rule is for requests of a match that is not there."
    ROUTE_RULE_NOT_ASKED = "MW2114", "A RoutePolicy's rule stands behind one that is for all requests."
    NO_MIRROR = "MW2115", "A RoutePolicy's mirror is no Service, headless, or without a port for a copy."
    UNKNOWN_UPSTREAM_SERVICE = "MW2120", "An UpstreamPolicy's service is no Service."
    OVERRULED_UPSTREAM_POLICY = "MW2121", "Another UpstreamPolicy of the same service counts."
    HASHES_NOTHING = (
        "MW2122",
        "An UpstreamPolicy's key is of requests, which a port of its service has none of.",
    )
    ASKS_NO_REQUESTS = "MW2124", "An UpstreamPolicy's health check is a request, and no port takes such."
    HEALTH_NOT_ADMITTED = (
        "MW2125",
        "An UpstreamPolicy's health check is a request that policy denies callers.",
    )
    CALLED_BY_ADDRESS = "MW2123", "An UpstreamPolicy's service is headless: whoever is called answers."
    PLAIN_TEXT = "MW2130", "A MutualTLS lets callers in that show no certificate; it says whom, and where."
    OVERRULED_MUTUAL_TLS = "MW2131", "Another MutualTLS for the same workloads and ports takes precedence."
    UNKNOWN_TLS_ACCOUNT = "MW2132", "No workload has a ServiceAccount that a MutualTLS is for."
    UNKNOWN_TLS_PORT = "MW2133", "A MutualTLS names a port at which none of its workloads is called."
    NOBODY_IN_PLAIN_TEXT = (
        "MW2134",
        "A MutualTLS is Permissive and says nothing of plain text where policy decides; nobody is let in.",
    )
    UNKNOWN_PLAIN_SOURCE = "MW2135", "Nobody stands behind a Service that a MutualTLS has as a source."
    UNKNOWN_PLAIN_MATCH = "MW2136", "A MutualTLS names an HTTPRouteGroup that does not exist."
    PLAIN_SERVER_FIRST = (
        "MW2137",
        "A MutualTLS lets plain text in where servers speak first.",
    )
    NO_WAY_TO_SIDECAR = "MW2140", "A workload has addresses of IPv6 alone, and its sidecar takes IPv4 alone."
    PAST_SIDECAR = "MW2141", "A workload has an address of IPv6, and its sidecar takes IPv4 alone."
    OVERRULED_AUTHORIZATION = (
        "MW2150",
        "Another ExternalAuthorization for the same workloads and ports takes precedence.",
    )
    UNKNOWN_ASKING_ACCOUNT = (
        "MW2151",
        "No workload has a ServiceAccount that an ExternalAuthorization is for.",
    )
    UNKNOWN_ASKING_PORT = (
        "MW2152",
        "An ExternalAuthorization names a port at which none of its workloads is called.",
    )
    NOT_ASKED_ABOUT = (
        "MW2153",
        "An ExternalAuthorization names a port that speaks no HTTP; nobody is asked there.",
    )
    UNKNOWN_AUTHORIZER = (
        "MW2154",
        "An ExternalAuthorization's ExtensionService is not there; nobody answers what is asked.",
    )
    FITS_NO_CERTIFICATE = (
        "MW2042",
        "No cipher suite or curve of a MeshConfig fits the keys of service certificates.",
    )
    NOT_LOOKED_FURTHER = (
        "MW2160",
        "An object is so large that lint stopped a check of it at the check's bound; more may be wrong.",
    )
