"""What the fields of our own policies mean."""

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
    "metadata.creationTimestamp": Meaning("Of several of one service the oldest counts."),
    "spec": Meaning("What becomes of requests to which service."),
    "spec.service": Meaning("The service that is called, of the object's namespace.", form=SERVICE),
    "spec.rules": Meaning("The first that fits a request decides; none leaves it as it is."),
    "spec.rules[].matches": Meaning("Which requests the rule is for.", "all"),
    "spec.rules[].matches[].apiGroup": Meaning("The kind's.", form=ROUTE_GROUPS),
    "spec.rules[].matches[].kind": Meaning("Of what is referred to there is one kind."),
    "spec.rules[].matches[].name": Meaning("Its name, in the object's namespace.", form=NAME),
    "spec.rules[].matches[].matches": Meaning("Which of its matches, by name.", "all of them"),
    "spec.rules[].timeout": Meaning("How long things may take."),
    "spec.rules[].timeout.request": Meaning(
        "From the whole request to the end of the answer, all its tries included: 1ms to 1h; then it is 504.",
        "any time",
        DURATION,
    ),
    "spec.rules[].headers": Meaning("What becomes of headers; of one name there is one change."),
    **{
        f"spec.rules[].headers.{message}{field}": meaning
        for message, text in (("request", "Those that the callee gets."), ("response", "The caller gets."))
        for field, meaning in {
            "": Meaning(text),
            ".set": Meaning("In the place of what was there."),
            ".set[].name": Meaning("Its name, in any case.", form=HEADER),
            ".set[].value": Meaning("Its value; a percent sign is one.", form=HEADER_VALUE),
            ".add": Meaning("Beside what was there."),
            ".add[].name": Meaning("Its name, in any case.", form=HEADER),
            ".add[].value": Meaning("Its value; a percent sign is one.", form=HEADER_VALUE),
            ".remove": Meaning("Names of those that go.", form=HEADER),
        }.items()
    },
    "spec.rules[].mirror": Meaning("Copies go to another service, too; what it answers is nobody's."),
    "spec.rules[].mirror.service": Meaning("The service, of the object's namespace.", form=SERVICE),
    "spec.rules[].mirror.percent": Meaning("How many of a hundred."),
    "spec.rules[].fault": Meaning("What is done to requests on purpose, before they are sent."),
    "spec.rules[].fault.delay": Meaning("They are held back."),
    "spec.rules[].fault.delay.percent": Meaning("How many of a hundred."),
    "spec.rules[].fault.delay.duration": Meaning("For how long: 1ms to 1h.", form=DURATION),
    "spec.rules[].fault.abort": Meaning("They are not sent, and answered at once."),
    "spec.rules[].fault.abort.percent": Meaning("How many of a hundred."),
    "spec.rules[].fault.abort.status": Meaning("With which status."),
}
UPSTREAM_POLICY: Final[Meanings] = {
    "metadata.creationTimestamp": Meaning("Of several of one service the oldest counts."),
    "spec": Meaning("How the endpoints of which service are reached."),
    "spec.service": Meaning("The service that answers, of the object's namespace.", form=SERVICE),
    "spec.outlierDetection": Meaning(
        "When an endpoint that fails is left alone for a while; what is not said here is as in the mesh."
    ),
    "spec.outlierDetection.consecutiveFailures": Meaning(
        "After how many connections that fail, or answers 502, 503 and 504, one after the other; 0: never.",
        "the mesh's",
    ),
    "spec.outlierDetection.consecutiveServerErrors": Meaning(
        "After how many answers of 500 and more, one after the other; 0: they do not count.", "the mesh's"
    ),
    "spec.outlierDetection.baseEjectionTime": Meaning(
        "For how long, each time as much longer: 1s to 5m.", "the mesh's", DURATION
    ),
    "spec.outlierDetection.maxEjectionPercent": Meaning(
        "How many of a hundred endpoints at once at most.", "the mesh's"
    ),
    "spec.healthCheck": Meaning(
        "How callers' sidecars ask endpoints whether they are well; `http` or `tcp`."
    ),
    "spec.healthCheck.http": Meaning(
        "By a GET: an answer from 200 to 399 is well. Ports of gRPC and TCP are not asked."
    ),
    "spec.healthCheck.http.path": Meaning("Its path, with a query if one is wanted.", form=CHECKED),
    "spec.healthCheck.http.expectedStatuses": Meaning(
        "Answers that are well: statuses and ranges.", "200 to 399", STATUSES
    ),
    "spec.healthCheck.grpc": Meaning("By gRPC's protocol of health, at ports of gRPC."),
    "spec.healthCheck.grpc.service": Meaning("The service that is asked about.", "the server", GRPC_SERVICE),
    "spec.healthCheck.tcp": Meaning("By a connection: whether the sidecar there is."),
    "spec.healthCheck.interval": Meaning("How often: 1s to 1h.", "10s", DURATION),
    "spec.healthCheck.timeout": Meaning("Within what an answer is there: 10ms to 1m.", "1s", DURATION),
    "spec.healthCheck.healthyThreshold": Meaning(
        "After how many good answers in a row it is called again.", "1"
    ),
    "spec.healthCheck.unhealthyThreshold": Meaning("After how many others in a row it is left alone.", "3"),
    "spec.locality": Meaning("That endpoints near the caller are preferred.", "where they are is not asked"),
    "spec.locality.prefer": Meaning("How near: in the caller's zone, or in its region."),
    "spec.locality.failover": Meaning("Whether others are called when too few of those are well."),
    "spec.loadBalancing": Meaning("Which of the endpoints is chosen."),
    "spec.loadBalancing.policy": Meaning(
        "One after the other, of two the less busy one, any, or for the same key the same."
    ),
    "spec.loadBalancing.hash": Meaning("What of a request is the key, by ConsistentHash; exactly one."),
    "spec.loadBalancing.hash.header": Meaning("The header of this name.", form=HEADER),
    "spec.loadBalancing.hash.query": Meaning("The parameter of the query of this name.", form=PARAMETER),
    "spec.loadBalancing.hash.cookie": Meaning("A cookie."),
    "spec.loadBalancing.hash.cookie.name": Meaning("Its name.", form=HEADER),
    "spec.loadBalancing.hash.cookie.ttl": Meaning(
        "Who has none is given one for so long, up to a year; 0s for as long as the client runs.",
        "it is given none",
        DURATION,
    ),
    "spec.loadBalancing.hash.cookie.path": Meaning("The path of one that is given.", form=COOKIE_PATH),
}

MUTUAL_TLS: Final[Meanings] = {
    "metadata.creationTimestamp": Meaning("Of several for the same the oldest counts."),
    "spec": Meaning("How callers come to which ports of which workloads."),
    "spec.mode": Meaning("With Strict every caller shows a certificate of the mesh."),
    "spec.serviceAccounts": Meaning(
        "Whose workloads: ServiceAccounts of the namespace.", "all of the namespace", NAME
    ),
    "spec.ports": Meaning("Target ports of theirs, as numbers.", "all of them"),
    "spec.plaintext": Meaning(
        "Who may call in plain text; `{}` is everybody.", "everybody in a permissive namespace, else nobody"
    ),
    "spec.plaintext.sources": Meaning("Where callers are.", "everywhere"),
    "spec.plaintext.sources[].kind": Meaning("Addresses, or the endpoints of a Service."),
    "spec.plaintext.sources[].name": Meaning("A range of addresses, or a Service's name."),
    "spec.plaintext.sources[].namespace": Meaning("The Service's namespace, which it must have.", form=LABEL),
    "spec.plaintext.matches": Meaning("Which requests.", "all"),
    "spec.plaintext.matches[].apiGroup": Meaning("The kind's.", form=ROUTE_GROUPS),
    "spec.plaintext.matches[].kind": Meaning("Of what is referred to there is one kind."),
    "spec.plaintext.matches[].name": Meaning("Its name, in the object's namespace.", form=NAME),
}

EXTERNAL_AUTHORIZATION: Final[Meanings] = {
    "metadata.creationTimestamp": Meaning("Of several for the same the oldest counts."),
    "spec": Meaning("Who is asked about requests to which ports of which workloads."),
    "spec.serviceAccounts": Meaning(
        "Whose workloads: ServiceAccounts of the namespace.", "all of the namespace", NAME
    ),
    "spec.ports": Meaning("Target ports of theirs, as numbers.", "all of them"),
    "spec.disabled": Meaning("Nobody is asked, the mesh's authorizer neither; nothing else is said then."),
    "spec.host": Meaning("Where the authorizer is.", form=HOST),
    "spec.port": Meaning("Its port, for gRPC in plain text."),
    "spec.extensionService": Meaning("An ExtensionService that says both.", "`host` and `port` do"),
    "spec.extensionService.name": Meaning("Its name.", form=NAME),
    "spec.extensionService.namespace": Meaning("Its namespace.", "the object's", LABEL),
    "spec.timeout": Meaning("How long it may take to answer, from 1ms to 5m.", "1s", DURATION),
    "spec.failureModeAllow": Meaning("Whether a request passes of which it says nothing in time."),
}
