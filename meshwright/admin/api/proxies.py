"""The shapes of what is answered of proxies: where they stand, what they were told, what they were sent."""

from typing import Final

from meshwright.admin.api.shape import (
    ANYTHING,
    FLAG,
    MOMENT,
    NUMBER,
    PORT,
    TEXT,
    WHOLE,
    listed,
    maybe,
    named,
    noted,
    one_of,
    record,
)

_SYNC: Final = one_of("synced", "pending", "asked", "nacked")
_PROXY: Final = {
    "name": noted(TEXT, "the common name in its certificate, <uuid>.<service>.<namespace>"),
    "cn": noted(TEXT, "the same"),
    "uuid": TEXT,
    "service": TEXT,
    "namespace": TEXT,
    "workload": noted(maybe(TEXT), "namespace/name"),
    "identity": noted(maybe(TEXT), "namespace/service account"),
    "pod": maybe(TEXT),
    "node": maybe(TEXT),
    "state": noted(
        one_of("connected", "expected", "disconnected", "ended"),
        "ended: disconnected, and its workload is gone, as after a rollout",
    ),
    "since": MOMENT,
    "age": noted(TEXT, "how long it has been in that state, in words"),
    "age_seconds": NUMBER,
    "address": maybe(TEXT),
    "protocol": noted(maybe(TEXT), "delta or sotw, null where it has no stream"),
    "streams": WHOLE,
    "why": noted(TEXT, "why it is behind, empty where it is not"),
    "sync": noted(named(_SYNC), "by type"),
    "pending_seconds": noted(named(NUMBER), "how long an answer is waited for, by type"),
    "held": noted(FLAG, "connected, and nothing can be served to it yet"),
    "admitted": noted(FLAG, "its workload gets traffic"),
    "dead": noted(FLAG, "gone for long, and callers have ejected it"),
    "ejected_by": noted(listed(TEXT), "proxies that have ejected an endpoint of it"),
}
PROXIES: Final = record({"at": MOMENT, "proxies": listed(record(_PROXY))})

_LINE: Final = {"text": noted(TEXT, "all of it, in words")}
_DIRECTION: Final = {"direction": one_of("inbound", "outbound", "outside"), "port": WHOLE}
_REQUESTS: Final = noted(maybe(listed(TEXT)), "which; null of every one")
_LISTENER: Final = record(
    _LINE,
    {
        **_DIRECTION,
        "protocol": TEXT,
        "services": listed(TEXT),
        "listen": noted(maybe(TEXT), "null where calls are led to it"),
        "application": noted(TEXT, "where the workload takes them"),
        "service": TEXT,
        "addresses": listed(TEXT),
        "networks": listed(TEXT),
        "connections": noted(FLAG, "every connection passes"),
        "server_names": listed(TEXT),
        "hosts": listed(TEXT),
        "egresses": listed(TEXT),
    },
)
_BACKEND: Final = record({"service": TEXT, "target_port": PORT, "weight": NUMBER})
_ROUTE: Final = record(
    _LINE,
    {
        **_DIRECTION,
        "protocol": TEXT,
        "callers": listed(TEXT),
        "requests": _REQUESTS,
        "target": noted(maybe(TEXT), "the object that admits them"),
        "service": TEXT,
        "split": noted(maybe(TEXT), "the TrafficSplit that says so"),
        "backends": listed(_BACKEND),
        "host": TEXT,
        "to": noted(maybe(TEXT), "another host than was called"),
    },
)
_CLUSTER: Final = record(
    _LINE,
    {
        **_DIRECTION,
        "application": TEXT,
        "host": noted(TEXT, "outside the mesh"),
        "service": TEXT,
        "target_port": PORT,
        "http": FLAG,
        "identities": noted(listed(TEXT), "who may answer"),
        "server_name": maybe(TEXT),
        "endpoints": noted(WHOLE, "how many"),
    },
)
_ENDPOINT: Final = record(
    _LINE,
    {
        "service": TEXT,
        "target_port": PORT,
        "address": TEXT,
        "port": WHOLE,
        "weight": NUMBER,
        "locality": TEXT,
    },
)
_SECRET: Final = record({"name": TEXT, "serial": maybe(TEXT), "not_after": maybe(MOMENT), **_LINE})
PROXY: Final = record(
    {
        "at": MOMENT,
        **_PROXY,
        "rejected": noted(listed(TEXT), "type and name, its words, the object at fault"),
        "left_out": noted(listed(TEXT), "what its kind of proxy cannot do"),
        "listeners": listed(_LISTENER),
        "routes": listed(_ROUTE),
        "clusters": listed(_CLUSTER),
        "endpoints": listed(_ENDPOINT),
        "secrets": listed(_SECRET),
    }
)

_RESOURCE: Final = record({"version": TEXT, "resource": noted(ANYTHING, "in the proxy's own words")})
CONFIGURATION: Final = record(
    {
        "at": MOMENT,
        "proxy": TEXT,
        "configuration": noted(
            maybe(named(named(_RESOURCE))),
            "by type and name, without what is secret; null where nothing can be served",
        ),
    }
)
_SNAPSHOT: Final = record({"proxies": listed(TEXT), "resources": noted(named(named(TEXT)), "versions")})
PUBLISHED: Final = record(
    {
        "at": MOMENT,
        "snapshots": noted(listed(_SNAPSHOT), "by type and name; secrets are not among them"),
        "admitted": noted(listed(TEXT), "proxies whose workloads get traffic, none where all do"),
        "withdrawn": noted(listed(TEXT), "proxies whose workloads get none: their certificates were revoked"),
    }
)

_CAUSE: Final = record({"object": TEXT, "origin": TEXT, "change": TEXT})
_WAVE: Final = record({"wave": WHOLE, "at": MOMENT, "causes": listed(_CAUSE), "more": WHOLE})
_COMPARABLE: Final = noted(FLAG, "both versions are kept: `/debug/xds/diff` shows what changed")
PUSH: Final = record(
    {
        "at": MOMENT,
        "trigger": record({"why": TEXT, "waves": listed(_WAVE)}),
        "type": TEXT,
        "protocol": TEXT,
        "nonce": TEXT,
        "version": TEXT,
        "added": listed(TEXT),
        "changed": listed(record({"name": TEXT, "from": TEXT, "to": TEXT, "comparable": _COMPARABLE})),
        "removed": listed(TEXT),
        "again": WHOLE,
        "bytes": WHOLE,
        "answer": one_of("pending", "ack", "nack", "overtaken", "stream ended"),
        "seconds": noted(maybe(NUMBER), "to the answer, or how long it has been waited for"),
        "seconds_from_event": noted(maybe(NUMBER), "from the change to the moment it was sent"),
        "error": maybe(record({"code": WHOLE, "message": TEXT})),
    }
)
PUSHES: Final = record({"at": MOMENT, "proxy": TEXT, "pushes": noted(listed(PUSH), "newest first")})

_TYPE: Final = record(
    {
        "type_url": TEXT,
        "state": _SYNC,
        "version": noted(TEXT, "that was sent last, empty where none was"),
        "nonce": TEXT,
        "last_sent": maybe(MOMENT),
        "acknowledged_version": TEXT,
        "error": maybe(record({"code": WHOLE, "message": TEXT, "resources": listed(TEXT)})),
        "wildcard": FLAG,
        "names": listed(TEXT),
    }
)
_STREAM: Final = record(
    {
        "stream": noted(WHOLE, "its number"),
        "proxy": TEXT,
        "node": maybe(TEXT),
        "user_agent": maybe(TEXT),
        "peer": TEXT,
        "protocol": one_of("delta", "sotw"),
        "since": MOMENT,
        "served": FLAG,
        "types": noted(named(_TYPE), "where each type stands"),
    }
)
STREAMS: Final = record({"at": MOMENT, "streams": listed(_STREAM)})
