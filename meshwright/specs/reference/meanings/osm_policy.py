"""Meanings of the fields of Open Service Mesh's policy kinds."""

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
        counted: Meaning(f"The number of {counted} allowed in each unit of time; {refused}."),
        "unit": Meaning("The unit of time.", form=UNIT),
        "burst": Meaning(f"The number of additional {counted} allowed at once."),
    }


REQUESTS: Final[Meanings] = {
    **_rate("requests", "further ones get an error response at once"),
    "responseStatusCode": Meaning(
        "The status of the error response; must be an HTTP error status in Envoy's enum."
    ),
    "responseHeadersToAdd": Meaning("Additional headers of the error response: at most ten, each only once."),
    "responseHeadersToAdd[].name": Meaning("The name of the header.", form=HEADER),
    "responseHeadersToAdd[].value": Meaning("The value of the header, without substitutions."),
}
_CONNECTIONS: Final[Meanings] = {
    "tcp": Meaning("Limits of connections."),
    "tcp.maxConnections": Meaning("The maximum simultaneous connections of a client's sidecar.", "no limit"),
    "tcp.connectTimeout": Meaning(
        "The timeout of a connection attempt, from 1ms to 1h.", "the mesh's setting", DURATION
    ),
    "http": Meaning("Limits of requests."),
    "http.maxRequests": Meaning("The maximum simultaneous requests of a client's sidecar.", "no limit"),
    "http.maxRequestsPerConnection": Meaning(
        "The maximum requests of a connection; 0 means unlimited.", "no limit"
    ),
    "http.maxPendingRequests": Meaning("The maximum requests that wait for a connection.", "no limit"),
    "http.maxRetries": Meaning("The maximum simultaneous retries.", "no limit"),
}
_DESCRIPTORS: Final[Meanings] = {
    "descriptors": Meaning("The descriptors of a request, which the service counts."),
    "descriptors[].entries": Meaning(
        "Keys with values; a descriptor is sent only if the request has all of its entries."
    ),
    "descriptors[].entries[].genericKey": Meaning("A constant entry for all requests."),
    "descriptors[].entries[].genericKey.key": Meaning("The key of the entry.", "`generic_key`"),
    "descriptors[].entries[].genericKey.value": Meaning("The value of the entry."),
    "descriptors[].entries[].remoteAddress": Meaning(
        "The address of the client, with the key `remote_address`."
    ),
    "descriptors[].entries[].requestHeader": Meaning("The value of a header."),
    "descriptors[].entries[].requestHeader.name": Meaning("The name of the header.", form=COUNTED_HEADER),
    "descriptors[].entries[].requestHeader.key": Meaning("The key of the entry."),
    "descriptors[].entries[].headerValueMatch": Meaning("An entry for requests with matching headers."),
    "descriptors[].entries[].headerValueMatch.key": Meaning("The key of the entry.", "`header_match`"),
    "descriptors[].entries[].headerValueMatch.value": Meaning("The value of the entry."),
    "descriptors[].entries[].headerValueMatch.expectMatch": Meaning(
        "Whether the headers must match; with false, the entry is for requests without a match."
    ),
    "descriptors[].entries[].headerValueMatch.headers": Meaning(
        "The conditions for headers; all must match."
    ),
    **under(
        "descriptors[].entries[].headerValueMatch.headers[]",
        {
            "name": Meaning("The name of the header.", form=COUNTED_HEADER),
            "exact": Meaning("The whole value."),
            "prefix": Meaning("The beginning of the value."),
            "suffix": Meaning("The end of the value."),
            "contains": Meaning("A part of the value."),
            "regex": Meaning("A regular expression (RE2) for the whole value."),
            "present": Meaning("Whether the header must be present."),
        },
    ),
}


def _request_meanings(silent: str) -> Meanings:
    return {
        "rateLimitService": Meaning(
            "The rate limit service: gRPC, `envoy.service.ratelimit.v3`, in plain text."
        ),
        "rateLimitService.host": Meaning("The DNS name or IP address of the service.", form=SERVER),
        "rateLimitService.port": Meaning("The port of the service."),
        "domain": Meaning("The domain, by which the service finds the limits."),
        "timeout": Meaning("The timeout of an answer, from 1ms to 1h.", "`20ms`", DURATION),
        "failOpen": Meaning(f"Whether {silent} without an answer."),
    }


RATES: Final[Meanings] = {
    "rateLimit": Meaning("Rate limits of the service's workloads."),
    "rateLimit.local": Meaning("Limits that each workload's sidecar counts by itself."),
    "rateLimit.local.tcp": Meaning("Connections, at each port.", "no limit"),
    **under("rateLimit.local.tcp", _rate("connections", "further ones are closed")),
    "rateLimit.local.http": Meaning("Requests, at each port.", "no limit"),
    **under("rateLimit.local.http", REQUESTS),
    "rateLimit.global": Meaning("Limits that a rate limit service counts for all workloads together."),
    "rateLimit.global.tcp": Meaning("Connections, at each port.", "no limit"),
    **under("rateLimit.global.tcp", _request_meanings("connections are allowed")),
    "rateLimit.global.tcp.descriptors": Meaning("The descriptors of a connection, which the service counts."),
    "rateLimit.global.tcp.descriptors[].entries": Meaning("Keys with values."),
    "rateLimit.global.tcp.descriptors[].entries[].key": Meaning("The key of the entry."),
    "rateLimit.global.tcp.descriptors[].entries[].value": Meaning("The value of the entry."),
    "rateLimit.global.http": Meaning("Requests, at each port.", "no limit"),
    **under("rateLimit.global.http", {**_request_meanings("requests are allowed"), **_DESCRIPTORS}),
    "rateLimit.global.http.enableXRateLimitHeaders": Meaning(
        "Whether responses have X-RateLimit headers with the remaining requests."
    ),
    "rateLimit.global.http.responseStatusCode": Meaning(
        "The status for requests over the limit; must be an HTTP error status in Envoy's enum."
    ),
    "httpRoutes": Meaning("Requests with limits of their own; the first matching route decides."),
    "httpRoutes[].path": Meaning("A regular expression (RE2) for the whole path; each only once."),
    "httpRoutes[].rateLimit": Meaning("The rate limits of the route.", "no limit of their own"),
    "httpRoutes[].rateLimit.local": Meaning("Limits that each workload's sidecar counts by itself."),
    **under("httpRoutes[].rateLimit.local", REQUESTS),
    "httpRoutes[].rateLimit.global": Meaning(
        "The descriptors of these requests, in place of the ones for all requests.",
        "the descriptors for all requests",
    ),
    **under("httpRoutes[].rateLimit.global", _DESCRIPTORS),
}

UPSTREAM_TRAFFIC_SETTING: Final[Meanings] = {
    "metadata.creationTimestamp": Meaning(
        "The age; of several objects for one host, the oldest is in force."
    ),
    "spec": Meaning("The specification of the object."),
    "spec.host": Meaning(
        "The service in the object's namespace, with the namespace in its name; or a host outside the mesh.",
        form=UPSTREAM,
    ),
    "spec.connectionSettings": Meaning("Limits of each client's sidecar."),
    **under("spec.connectionSettings", _CONNECTIONS),
    **under("spec", RATES),
}

EGRESS: Final[Meanings] = {
    "spec": Meaning("The clients and the destinations."),
    "spec.sources": Meaning("The clients; without a source, clients are not allowed.", "no client"),
    "spec.sources[].kind": Meaning("The kind of the identity."),
    "spec.sources[].name": Meaning("The name of the ServiceAccount.", form=NAME),
    "spec.sources[].namespace": Meaning("The namespace.", "the object's namespace", LABEL),
    "spec.hosts": Meaning(
        "The hosts: for HTTP the host of the request, for HTTPS the server name (SNI) of the TLS connection.",
        "every host; for HTTP only together with `ipAddresses`",
        EGRESS_HOST,
    ),
    "spec.ipAddresses": Meaning(
        "The IP ranges, of either family; a call to an address in them is sent there, whatever its host.",
        "every address; HTTP goes to the address of the host in DNS",
        NETWORK,
    ),
    "spec.ports": Meaning("The ports; without a port, traffic is not allowed.", "no traffic"),
    "spec.ports[].number": Meaning("The port number."),
    "spec.ports[].protocol": Meaning("The protocol, in upper or lower case.", form=EGRESS_PROTOCOL),
    "spec.matches": Meaning("Only HTTP requests that match these are allowed.", "all requests"),
    "spec.matches[].apiGroup": Meaning("The API group of the kind.", form=EGRESS_GROUP),
    "spec.matches[].kind": Meaning(
        "The kind: an HTTPRouteGroup, or at most once an UpstreamTrafficSetting, whose "
        "`connectionSettings` limit calls to a host in `hosts`.",
        form=EGRESS_MATCH,
    ),
    "spec.matches[].name": Meaning("The name, in the object's namespace.", form=NAME),
}
RETRY: Final[Meanings] = {
    "metadata.creationTimestamp": Meaning(
        "The age; of several objects of one source for one service, the oldest is in force."
    ),
    "spec": Meaning("The client, the services and the retries."),
    "spec.source": Meaning("The client: a ServiceAccount in the object's namespace."),
    "spec.source.kind": Meaning("The kind of the identity."),
    "spec.source.name": Meaning("The name.", form=NAME),
    "spec.source.namespace": Meaning(
        "The namespace; must be the object's own.", "the object's namespace", LABEL
    ),
    "spec.destinations": Meaning("The called services, each only once."),
    "spec.destinations[].kind": Meaning("The kind of the destination."),
    "spec.destinations[].name": Meaning("The name of the Service.", form=NAME),
    "spec.destinations[].namespace": Meaning("The namespace.", "the object's namespace", LABEL),
    "spec.retryPolicy": Meaning("The retries, in place of the mesh's default retries."),
    "spec.retryPolicy.retryOn": Meaning("The conditions for a retry, by Envoy's names.", form=RETRY_ON),
    "spec.retryPolicy.numRetries": Meaning("The maximum number of retries of a request."),
    "spec.retryPolicy.perTryTimeout": Meaning(
        "The time limit of each try, from 1ms to 1h.", "no limit", DURATION
    ),
    "spec.retryPolicy.retryBackoffBaseInterval": Meaning(
        "The approximate pause before the first retry; later pauses are at most ten times as long.",
        "`25ms`",
        DURATION,
    ),
}

TELEMETRY: Final[Meanings] = {
    "metadata.creationTimestamp": Meaning(
        "The age; of several objects that apply equally to a sidecar, the oldest is in force."
    ),
    "spec": Meaning("The sidecars, and their access logs and traces."),
    "spec.selector": Meaning("The labels of workloads in the namespace.", "all workloads of the namespace"),
    "spec.accessLog": Meaning(
        "The access log, with a line for each request or connection.", "the mesh's setting"
    ),
    "spec.accessLog.format": Meaning(
        "Text with Envoy's operators, or a JSON object with such texts as values.",
        "the sidecar's own JSON format",
    ),
    "spec.accessLog.stdout": Meaning(
        "Whether the log is written to the sidecar's standard output. This field is Meshwright's own."
    ),
    "spec.accessLog.file": Meaning("A file for the log. This field is Meshwright's own.", "none", FILE_PATH),
    "spec.accessLog.openTelemetry": Meaning("A collector that receives the log by OTLP.", "none"),
    "spec.accessLog.openTelemetry.extensionService": Meaning("The ExtensionService of the collector."),
    "spec.accessLog.openTelemetry.extensionService.name": Meaning("The name.", form=NAME),
    "spec.accessLog.openTelemetry.extensionService.namespace": Meaning(
        "The namespace.", "the object's namespace", LABEL
    ),
    "spec.accessLog.openTelemetry.attributes": Meaning(
        "Additional attributes of each record; the values may have Envoy's operators."
    ),
    "spec.accessLog.filter": Meaning(
        "The logged requests and connections; all conditions must be met. These fields are Meshwright's own.",
        "all",
    ),
    "spec.accessLog.filter.minStatus": Meaning(
        "The minimum status of logged requests; of connections, only failed ones are logged.", "all"
    ),
    "spec.accessLog.filter.minDuration": Meaning(
        "The minimum duration of logged requests, from 1ms to 1h.", "all", DURATION
    ),
    "spec.accessLog.sampling": Meaning(
        "The percentage of requests and connections that are logged. This field is Meshwright's own.", "all"
    ),
    "spec.tracing": Meaning("Tracing, if the mesh has a tracing collector. This field is Meshwright's own."),
    "spec.tracing.sampling": Meaning(
        "The percentage of requests that are traced, among the ones without a trace of their own."
    ),
}

EXTENSION_SERVICE: Final[Meanings] = {
    "spec": Meaning("The specification of the object."),
    "spec.host": Meaning("The DNS name or IP address of the service.", form=SERVER),
    "spec.port": Meaning("The port of the service."),
    "spec.protocol": Meaning("The protocol: gRPC in plain text.", "`grpc`", GRPC),
    "spec.connectTimeout": Meaning("The timeout of a connection attempt, from 1ms to 1h.", "5s", DURATION),
}
