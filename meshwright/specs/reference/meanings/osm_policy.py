"""Open Service Mesh's own policy."""

from typing import Final

from meshwright.specs.reference.meaning import (
    COUNTED_HEADER,
    DURATION,
    EGRESS_GROUP,
    EGRESS_HOST,
    EGRESS_MATCH,
    EGRESS_PROTOCOL,
    FILE_PATH,
    GRPC,
    HEADER,
    LABEL,
    NAME,
    NETWORK,
    RETRY_ON,
    SERVER,
    UNIT,
    UPSTREAM,
    Meaning,
    Meanings,
    under,
)


def _rate(counted: str, refused: str) -> Meanings:
    return {
        counted: Meaning(f"How many {counted} are taken in each unit of time; {refused}."),
        "unit": Meaning("The unit of time.", form=UNIT),
        "burst": Meaning(f"How many {counted} more may come at once."),
    }


_REQUESTS: Final[Meanings] = {
    **_rate("requests", "more are answered at once"),
    "responseStatusCode": Meaning("The status of that answer: one of an error that Envoy knows."),
    "responseHeadersToAdd": Meaning("Headers that it has besides: at most ten, each once."),
    "responseHeadersToAdd[].name": Meaning("The header's name.", form=HEADER),
    "responseHeadersToAdd[].value": Meaning("Its value, as it is."),
}
_CONNECTIONS: Final[Meanings] = {
    "tcp": Meaning("Of connections."),
    "tcp.maxConnections": Meaning("How many a caller's sidecar has at once.", "no limit"),
    "tcp.connectTimeout": Meaning("How long it waits for one: 1ms to 1h.", "the mesh's", DURATION),
    "http": Meaning("Of requests."),
    "http.maxRequests": Meaning("How many a caller's sidecar has under way at once.", "no limit"),
    "http.maxRequestsPerConnection": Meaning("How many a connection takes; 0 is any number.", "no limit"),
    "http.maxPendingRequests": Meaning("How many wait for a connection at once.", "no limit"),
    "http.maxRetries": Meaning("How many are tried again at once.", "no limit"),
}
_DESCRIPTORS: Final[Meanings] = {
    "descriptors": Meaning("What the service is told of a request, and counts together."),
    "descriptors[].entries": Meaning("Keys with values. A request that lacks one is not told by these."),
    "descriptors[].entries[].genericKey": Meaning("The same for all requests."),
    "descriptors[].entries[].genericKey.key": Meaning("The entry's key.", "`generic_key`"),
    "descriptors[].entries[].genericKey.value": Meaning("Its value."),
    "descriptors[].entries[].remoteAddress": Meaning("The caller's address, as `remote_address`."),
    "descriptors[].entries[].requestHeader": Meaning("The value of a header."),
    "descriptors[].entries[].requestHeader.name": Meaning("The header's name.", form=COUNTED_HEADER),
    "descriptors[].entries[].requestHeader.key": Meaning("The entry's key."),
    "descriptors[].entries[].headerValueMatch": Meaning("An entry for requests with such headers."),
    "descriptors[].entries[].headerValueMatch.key": Meaning("The entry's key.", "`header_match`"),
    "descriptors[].entries[].headerValueMatch.value": Meaning("Its value."),
    "descriptors[].entries[].headerValueMatch.expectMatch": Meaning(
        "With false it is for requests whose headers are not all so."
    ),
    "descriptors[].entries[].headerValueMatch.headers": Meaning("What headers are to be: all of it."),
    **under(
        "descriptors[].entries[].headerValueMatch.headers[]",
        {
            "name": Meaning("The header's name.", form=COUNTED_HEADER),
            "exact": Meaning("The value in full."),
            "prefix": Meaning("What it begins with."),
            "suffix": Meaning("What it ends with."),
            "contains": Meaning("What is in it."),
            "regex": Meaning("An expression (RE2) that it matches in full."),
            "present": Meaning("Whether there is such a header."),
        },
    ),
}


def _asked(silent: str) -> Meanings:
    return {
        "rateLimitService": Meaning("Who is asked: gRPC, `envoy.service.ratelimit.v3`, in plain text."),
        "rateLimitService.host": Meaning("Its name in the DNS, or its address.", form=SERVER),
        "rateLimitService.port": Meaning("Its port."),
        "domain": Meaning("What the service knows these limits by."),
        "timeout": Meaning("How long an answer is waited for: 1ms to 1h.", "`20ms`", DURATION),
        "failOpen": Meaning(f"Whether {silent} without an answer."),
    }


_RATES: Final[Meanings] = {
    "rateLimit": Meaning("How much each workload of the service takes in a time."),
    "rateLimit.local": Meaning("What its sidecar counts by itself."),
    "rateLimit.local.tcp": Meaning("Of connections, at each port.", "no limit"),
    **under("rateLimit.local.tcp", _rate("connections", "more are closed")),
    "rateLimit.local.http": Meaning("Of requests, at each port.", "no limit"),
    **under("rateLimit.local.http", _REQUESTS),
    "rateLimit.global": Meaning("What a service counts for all workloads together."),
    "rateLimit.global.tcp": Meaning("Of connections, at each port.", "nobody is asked"),
    **under("rateLimit.global.tcp", _asked("connections pass")),
    "rateLimit.global.tcp.descriptors": Meaning("What the service is told of each, and counts together."),
    "rateLimit.global.tcp.descriptors[].entries": Meaning("Keys with values."),
    "rateLimit.global.tcp.descriptors[].entries[].key": Meaning("The entry's key."),
    "rateLimit.global.tcp.descriptors[].entries[].value": Meaning("Its value."),
    "rateLimit.global.http": Meaning("Of requests, at each port.", "nobody is asked"),
    **under("rateLimit.global.http", {**_asked("requests pass"), **_DESCRIPTORS}),
    "rateLimit.global.http.enableXRateLimitHeaders": Meaning(
        "Whether answers say in X-RateLimit headers what is left."
    ),
    "rateLimit.global.http.responseStatusCode": Meaning(
        "The status of the answer to what is over: one of an error that Envoy knows."
    ),
    "httpRoutes": Meaning("Requests that are counted by themselves: the first route that fits decides."),
    "httpRoutes[].path": Meaning("A regular expression (RE2) that the whole path matches; each once."),
    "httpRoutes[].rateLimit": Meaning("How many of them are taken.", "no limit of their own"),
    "httpRoutes[].rateLimit.local": Meaning("What the sidecar counts by itself."),
    **under("httpRoutes[].rateLimit.local", _REQUESTS),
    "httpRoutes[].rateLimit.global": Meaning(
        "What the service is told of them, in place of what it is told of all.", "what is told of all"
    ),
    **under("httpRoutes[].rateLimit.global", _DESCRIPTORS),
}

UPSTREAM_TRAFFIC_SETTING: Final[Meanings] = {
    "metadata.creationTimestamp": Meaning("Of several for one host the oldest is in force."),
    "spec": Meaning("What is limited."),
    "spec.host": Meaning(
        "The service, of the object's namespace, by its name with the namespace.", form=UPSTREAM
    ),
    "spec.connectionSettings": Meaning("What each caller's sidecar lets go there at once."),
    **under("spec.connectionSettings", _CONNECTIONS),
    **under("spec", _RATES),
}

EGRESS: Final[Meanings] = {
    "spec": Meaning("What may leave the mesh."),
    "spec.sources": Meaning("Whose calls; none is nobody's.", "nobody"),
    "spec.sources[].kind": Meaning("Of identities there is one kind."),
    "spec.sources[].name": Meaning("The ServiceAccount's name.", form=NAME),
    "spec.sources[].namespace": Meaning("Its namespace.", "the object's", LABEL),
    "spec.hosts": Meaning(
        "Which hosts: of HTTP those that requests name, of HTTPS those that clients ask for in TLS.",
        "every host; over HTTP with `ipAddresses` alone",
        EGRESS_HOST,
    ),
    "spec.ipAddresses": Meaning(
        "To which addresses, of either family; a call goes there, whatever host it names.",
        "every address; HTTP goes where the DNS says that the host is",
        NETWORK,
    ),
    "spec.ports": Meaning("At which ports; none is no port.", "nothing"),
    "spec.ports[].number": Meaning("The number."),
    "spec.ports[].protocol": Meaning("What is spoken there, in any case.", form=EGRESS_PROTOCOL),
    "spec.matches": Meaning("Only requests that these admit, over HTTP.", "all requests"),
    "spec.matches[].apiGroup": Meaning("The kind's.", form=EGRESS_GROUP),
    "spec.matches[].kind": Meaning(
        "An HTTPRouteGroup; an UpstreamTrafficSetting once at the most, whose limits are not enforced here.",
        form=EGRESS_MATCH,
    ),
    "spec.matches[].name": Meaning("Its name, in the object's namespace.", form=NAME),
}
RETRY: Final[Meanings] = {
    "metadata.creationTimestamp": Meaning("Of several of one source for one service the oldest is in force."),
    "spec": Meaning("Who tries what again."),
    "spec.source": Meaning("Who calls: a ServiceAccount of the object's namespace."),
    "spec.source.kind": Meaning("Of identities there is one kind."),
    "spec.source.name": Meaning("Its name.", form=NAME),
    "spec.source.namespace": Meaning("Must be the object's own.", "the object's", LABEL),
    "spec.destinations": Meaning("Which services are called, each once."),
    "spec.destinations[].kind": Meaning("Of what is called there is one kind."),
    "spec.destinations[].name": Meaning("The Service's name.", form=NAME),
    "spec.destinations[].namespace": Meaning("Its namespace.", "the object's", LABEL),
    "spec.retryPolicy": Meaning("What is tried again, in place of what holds for the mesh."),
    "spec.retryPolicy.retryOn": Meaning("What must have become of a try, in Envoy's words.", form=RETRY_ON),
    "spec.retryPolicy.numRetries": Meaning("How many times a request is tried again at most."),
    "spec.retryPolicy.perTryTimeout": Meaning("How long a try may take: 1ms to 1h.", "any time", DURATION),
    "spec.retryPolicy.retryBackoffBaseInterval": Meaning(
        "About how long is waited before the first; ten times as long at most.", "`25ms`", DURATION
    ),
}

TELEMETRY: Final[Meanings] = {
    "metadata.creationTimestamp": Meaning("Of several for one sidecar the oldest counts."),
    "spec": Meaning("What is told of which sidecars' traffic."),
    "spec.selector": Meaning("Labels of workloads of the namespace.", "all of the namespace"),
    "spec.accessLog": Meaning("A line for each request, or connection.", "as in the mesh"),
    "spec.accessLog.format": Meaning(
        "Text with Envoy's operators, or an object in JSON of such texts.", "the sidecar's own, JSON"
    ),
    "spec.accessLog.stdout": Meaning("Whether it goes to the sidecar's standard output. A field of ours."),
    "spec.accessLog.file": Meaning("A file that it goes to besides. A field of ours.", "none", FILE_PATH),
    "spec.accessLog.openTelemetry": Meaning("A collector that is told of it besides, by OTLP.", "none"),
    "spec.accessLog.openTelemetry.extensionService": Meaning("The collector, as an object."),
    "spec.accessLog.openTelemetry.extensionService.name": Meaning("Its name.", form=NAME),
    "spec.accessLog.openTelemetry.extensionService.namespace": Meaning(
        "Its namespace.", "the object's", LABEL
    ),
    "spec.accessLog.openTelemetry.attributes": Meaning("What stands beside each record, with operators."),
    "spec.accessLog.filter": Meaning("What is logged: that of which all holds. Fields of ours.", "all"),
    "spec.accessLog.filter.minStatus": Meaning(
        "Requests answered with this status or a higher one; connections that ended with an error.", "all"
    ),
    "spec.accessLog.filter.minDuration": Meaning("What took as long or longer: 1ms to 1h.", "all", DURATION),
    "spec.accessLog.sampling": Meaning("How many of a hundred are logged. A field of ours.", "all"),
    "spec.tracing": Meaning("What is traced, where the mesh has a collector of spans. A field of ours."),
    "spec.tracing.sampling": Meaning("How many requests of a hundred, of those that come without a trace."),
}

EXTENSION_SERVICE: Final[Meanings] = {
    "spec": Meaning("Where it is."),
    "spec.host": Meaning("Its name in the DNS, or its address.", form=SERVER),
    "spec.port": Meaning("Its port."),
    "spec.protocol": Meaning("How it is called: over gRPC in plain text.", "`grpc`", GRPC),
    "spec.connectTimeout": Meaning("How long a connection is waited for: 1ms to 1h.", "5s", DURATION),
}
