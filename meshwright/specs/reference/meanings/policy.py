"""Meanings of the fields of Meshwright's policy kinds."""

from typing import Final

from meshwright.specs.reference.meaning import (
    CHECKED,
    COOKIE_PATH,
    DURATION,
    GRPC_SERVICE,
    HEADER,
    HEADER_VALUE,
    HOST,
    LABEL,
    NAME,
    PARAMETER,
    ROUTE_GROUPS,
    SERVICE,
    STATUSES,
    Meaning,
    Meanings,
)

ROUTE_POLICY: Final[Meanings] = {
    "metadata.creationTimestamp": Meaning(
        "The age; of several policies for one service, the oldest is in force."
    ),
    "spec": Meaning("The service and the rules for its requests."),
    "spec.service": Meaning("The called service, in the object's namespace.", form=SERVICE),
    "spec.rules": Meaning(
        "The rules; the first rule that matches a request decides, and a request without a "
        "matching rule is unchanged."
    ),
    "spec.rules[].matches": Meaning("The requests of the rule.", "all requests"),
    "spec.rules[].matches[].apiGroup": Meaning("The API group of the kind.", form=ROUTE_GROUPS),
    "spec.rules[].matches[].kind": Meaning("The kind."),
    "spec.rules[].matches[].name": Meaning(
        "The name of the HTTPRouteGroup, in the object's namespace.", form=NAME
    ),
    "spec.rules[].matches[].matches": Meaning("The names of matches in the HTTPRouteGroup.", "all matches"),
    "spec.rules[].timeout": Meaning("Time limits."),
    "spec.rules[].timeout.request": Meaning(
        "The time limit from the end of the request to the end of the response, including all"
        " retries: 1ms to 1h. After it the client gets 504.",
        "no limit",
        DURATION,
    ),
    "spec.rules[].headers": Meaning("Changes of headers; each header may have only one change."),
    **{
        f"spec.rules[].headers.{message}{field}": meaning
        for message, text in (
            ("request", "The headers of the request to the service."),
            ("response", "The headers of the response to the client."),
        )
        for field, meaning in {
            "": Meaning(text),
            ".set": Meaning("Headers that replace present ones."),
            ".set[].name": Meaning("The name of the header, in upper or lower case.", form=HEADER),
            ".set[].value": Meaning("The value of the header; percent signs are literal.", form=HEADER_VALUE),
            ".add": Meaning("Headers that are added to present ones."),
            ".add[].name": Meaning("The name of the header, in upper or lower case.", form=HEADER),
            ".add[].value": Meaning("The value of the header; percent signs are literal.", form=HEADER_VALUE),
            ".remove": Meaning("The names of headers to remove.", form=HEADER),
        }.items()
    },
    "spec.rules[].mirror": Meaning("Copies of requests for another service; its responses are dropped."),
    "spec.rules[].mirror.service": Meaning("The service, in the object's namespace.", form=SERVICE),
    "spec.rules[].mirror.percent": Meaning("The percentage of requests."),
    "spec.rules[].fault": Meaning("Deliberate faults of requests, before they are sent."),
    "spec.rules[].fault.delay": Meaning("A delay of requests."),
    "spec.rules[].fault.delay.percent": Meaning("The percentage of requests."),
    "spec.rules[].fault.delay.duration": Meaning("The delay, from 1ms to 1h.", form=DURATION),
    "spec.rules[].fault.abort": Meaning("An immediate error response; the request is not sent."),
    "spec.rules[].fault.abort.percent": Meaning("The percentage of requests."),
    "spec.rules[].fault.abort.status": Meaning("The status of the response."),
}
UPSTREAM_POLICY: Final[Meanings] = {
    "metadata.creationTimestamp": Meaning(
        "The age; of several policies for one service, the oldest is in force."
    ),
    "spec": Meaning("The service and the settings for its endpoints."),
    "spec.service": Meaning("The service, in the object's namespace.", form=SERVICE),
    "spec.outlierDetection": Meaning(
        "The temporary ejection of failing endpoints; missing fields have the mesh's settings."
    ),
    "spec.outlierDetection.consecutiveFailures": Meaning(
        "The consecutive failed connections, or responses 502, 503 and 504, until an endpoint"
        " is ejected; 0 means never.",
        "the mesh's setting",
    ),
    "spec.outlierDetection.consecutiveServerErrors": Meaning(
        "The consecutive responses with status 500 or higher until an endpoint is ejected; 0 "
        "means that they do not count.",
        "the mesh's setting",
    ),
    "spec.outlierDetection.baseEjectionTime": Meaning(
        "The time of the first ejection, from 1s to 5m; each further one is longer by this time.",
        "the mesh's setting",
        DURATION,
    ),
    "spec.outlierDetection.maxEjectionPercent": Meaning(
        "The maximum percentage of endpoints that are ejected at the same time.", "the mesh's setting"
    ),
    "spec.healthCheck": Meaning(
        "Health checks by the clients' sidecars; exactly one of `http`, `grpc` and `tcp`."
    ),
    "spec.healthCheck.http": Meaning("Checks with a GET request, only of HTTP ports."),
    "spec.healthCheck.http.path": Meaning("The path of the request, optionally with a query.", form=CHECKED),
    "spec.healthCheck.http.expectedStatuses": Meaning(
        "The statuses of a healthy endpoint: single ones and ranges.", "200 to 399", STATUSES
    ),
    "spec.healthCheck.grpc": Meaning("Checks with the gRPC health protocol, only of gRPC ports."),
    "spec.healthCheck.grpc.service": Meaning("The checked gRPC service.", "the whole server", GRPC_SERVICE),
    "spec.healthCheck.tcp": Meaning(
        "Checks with a TCP connection to the sidecar of the endpoint, of all ports."
    ),
    "spec.healthCheck.interval": Meaning("The time between two checks, from 1s to 1h.", "10s", DURATION),
    "spec.healthCheck.timeout": Meaning("The maximum time for a response, from 10ms to 1m.", "1s", DURATION),
    "spec.healthCheck.healthyThreshold": Meaning(
        "The consecutive successful checks until an unhealthy endpoint receives requests again.", "1"
    ),
    "spec.healthCheck.unhealthyThreshold": Meaning(
        "The consecutive failed checks until an endpoint stops receiving requests.", "3"
    ),
    "spec.locality": Meaning("Preference for endpoints near the client.", "localities are ignored"),
    "spec.locality.prefer": Meaning("The preferred endpoints: in the zone or in the region of the client."),
    "spec.locality.failover": Meaning(
        "Whether other endpoints receive requests if too few preferred ones are healthy."
    ),
    "spec.loadBalancing": Meaning("The choice of an endpoint."),
    "spec.loadBalancing.policy": Meaning(
        "The algorithm: each endpoint in turn (RoundRobin), the less busy of two random ones "
        "(LeastRequest), a random one (Random), or the same one for the same key "
        "(ConsistentHash)."
    ),
    "spec.loadBalancing.hash": Meaning(
        "The part of a request that is the key for ConsistentHash; exactly one."
    ),
    "spec.loadBalancing.hash.header": Meaning("The name of a header.", form=HEADER),
    "spec.loadBalancing.hash.query": Meaning("The name of a query parameter.", form=PARAMETER),
    "spec.loadBalancing.hash.cookie": Meaning("The cookie."),
    "spec.loadBalancing.hash.cookie.name": Meaning("The name.", form=HEADER),
    "spec.loadBalancing.hash.cookie.ttl": Meaning(
        "The lifetime, up to a year, of a cookie that is set for clients without one; 0s is a"
        " session cookie.",
        "a cookie is not set",
        DURATION,
    ),
    "spec.loadBalancing.hash.cookie.path": Meaning("The path of a cookie that is set.", form=COOKIE_PATH),
}

MUTUAL_TLS: Final[Meanings] = {
    "metadata.creationTimestamp": Meaning(
        "The age; of several objects with the same scope, the oldest is in force."
    ),
    "spec": Meaning("The workloads and ports, and the clients without a certificate."),
    "spec.mode": Meaning("With Strict, every client needs a certificate of the mesh."),
    "spec.serviceAccounts": Meaning(
        "The ServiceAccounts of the workloads, in the object's namespace.",
        "all workloads of the namespace",
        NAME,
    ),
    "spec.ports": Meaning("The target ports of the workloads, as numbers.", "all ports"),
    "spec.plaintext": Meaning(
        "The clients that may use plain text; `{}` means all clients.",
        "all clients in a permissive namespace, else none",
    ),
    "spec.plaintext.sources": Meaning("The places of the clients.", "any place"),
    "spec.plaintext.sources[].kind": Meaning(
        "The type of the place: an IP range, or the endpoints of a Service."
    ),
    "spec.plaintext.sources[].name": Meaning("The IP range, or the name of the Service."),
    "spec.plaintext.sources[].namespace": Meaning(
        "The namespace of the Service, required for a Service.", form=LABEL
    ),
    "spec.plaintext.matches": Meaning("The allowed requests.", "all requests"),
    "spec.plaintext.matches[].apiGroup": Meaning("The API group of the kind.", form=ROUTE_GROUPS),
    "spec.plaintext.matches[].kind": Meaning("The kind."),
    "spec.plaintext.matches[].name": Meaning(
        "The name of the HTTPRouteGroup, in the object's namespace.", form=NAME
    ),
}

EXTERNAL_AUTHORIZATION: Final[Meanings] = {
    "metadata.creationTimestamp": Meaning(
        "The age; of several objects with the same scope, the oldest is in force."
    ),
    "spec": Meaning("The workloads and ports, and their external authorizer."),
    "spec.serviceAccounts": Meaning(
        "The ServiceAccounts of the workloads, in the object's namespace.",
        "all workloads of the namespace",
        NAME,
    ),
    "spec.ports": Meaning("The target ports of the workloads, as numbers.", "all ports"),
    "spec.disabled": Meaning(
        "Whether authorization is switched off, including the mesh's authorizer; no other "
        "field about the authorizer is then allowed."
    ),
    "spec.host": Meaning("The address of the authorizer.", form=HOST),
    "spec.port": Meaning("The port of the authorizer, for gRPC in plain text."),
    "spec.extensionService": Meaning(
        "An ExtensionService with the address and port of the authorizer.", "`host` and `port` are used"
    ),
    "spec.extensionService.name": Meaning("The name.", form=NAME),
    "spec.extensionService.namespace": Meaning(
        "The namespace of the ExtensionService.", "the object's namespace", LABEL
    ),
    "spec.timeout": Meaning("The timeout of an answer, from 1ms to 5m.", "1s", DURATION),
    "spec.failureModeAllow": Meaning("Whether requests without an answer are allowed."),
}
