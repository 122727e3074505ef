"""JSON shapes of the API's answers about proxies: state, configuration, responses and streams."""

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
    "name": noted(TEXT, "common name in the certificate, <uuid>.<service>.<namespace>"),
    "cn": noted(TEXT, "same as name"),
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
    "age": noted(TEXT, "time in this state, in words"),
    "age_seconds": NUMBER,
    "address": maybe(TEXT),
    "protocol": noted(maybe(TEXT), "delta or sotw; null without a stream"),
    "streams": WHOLE,
    "why": noted(TEXT, "why its configuration is outdated; empty if it is current"),
    "sync": noted(named(_SYNC), "by type"),
    "pending_seconds": noted(named(NUMBER), "seconds since the unanswered response, by type"),
    "held": noted(FLAG, "connected, but without a configuration yet"),
    "admitted": noted(FLAG, "its workload gets traffic"),
    "dead": noted(FLAG, "disconnected for long, and ejected by callers"),
    "ejected_by": noted(listed(TEXT), "proxies that ejected an endpoint of this proxy"),
}
PROXIES: Final = record({"at": MOMENT, "proxies": listed(record(_PROXY))})

_LINE: Final = {"text": noted(TEXT, "the whole entry in words")}
_DIRECTION: Final = {"direction": one_of("inbound", "outbound", "outside", "edge"), "port": WHOLE}
_REQUESTS: Final = noted(maybe(listed(TEXT)), "matching requests; null means every request")
_LISTENER: Final = record(
    _LINE,
    {
        **_DIRECTION,
        "protocol": TEXT,
        "services": listed(TEXT),
        "listen": noted(maybe(TEXT), "null if traffic is intercepted"),
        "application": noted(TEXT, "address of the application"),
        "service": TEXT,
        "addresses": listed(TEXT),
        "networks": listed(TEXT),
        "connections": noted(FLAG, "every connection is allowed"),
        "server_names": listed(TEXT),
        "hosts": listed(TEXT),
        "egresses": listed(TEXT),
        "gateway": noted(TEXT, "namespace/name; of the direction edge"),
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
        "target": noted(maybe(TEXT), "the object that allows the callers"),
        "service": TEXT,
        "split": noted(maybe(TEXT), "the TrafficSplit of the backends"),
        "route": noted(maybe(TEXT), "the Gateway API route of the requests, with its kind"),
        "rule": noted(maybe(TEXT), "its rule: the name, or for example rule-1"),
        "backends": listed(_BACKEND),
        "host": noted(TEXT, "host outside the mesh or at a gateway; empty for all other names"),
        "gateway": TEXT,
        "to": noted(maybe(TEXT), "host, if it differs from the called one"),
    },
)
_CLUSTER: Final = record(
    _LINE,
    {
        **_DIRECTION,
        "application": TEXT,
        "host": noted(TEXT, "host outside the mesh"),
        "service": TEXT,
        "target_port": PORT,
        "http": FLAG,
        "identities": noted(listed(TEXT), "identities that may answer"),
        "server_name": maybe(TEXT),
        "endpoints": noted(WHOLE, "number of endpoints"),
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
        "rejected": noted(listed(TEXT), "type and name, error of the proxy, and the object that causes it"),
        "left_out": noted(listed(TEXT), "features that this kind of proxy does not support"),
        "listeners": listed(_LISTENER),
        "routes": listed(_ROUTE),
        "clusters": listed(_CLUSTER),
        "endpoints": listed(_ENDPOINT),
        "secrets": listed(_SECRET),
    }
)

_RESOURCE: Final = record({"version": TEXT, "resource": noted(ANYTHING, "in the form of the proxy")})
CONFIGURATION: Final = record(
    {
        "at": MOMENT,
        "proxy": TEXT,
        "configuration": noted(
            maybe(named(named(_RESOURCE))),
            "by type and name, without secrets; null without a configuration",
        ),
    }
)
_SNAPSHOT: Final = record({"proxies": listed(TEXT), "resources": noted(named(named(TEXT)), "versions")})
PUBLISHED: Final = record(
    {
        "at": MOMENT,
        "snapshots": noted(listed(_SNAPSHOT), "by type and name, without secrets"),
        "admitted": noted(listed(TEXT), "proxies whose workloads get traffic; empty if all do"),
        "withdrawn": noted(
            listed(TEXT),
            "proxies whose workloads do not get traffic, because their certificates were revoked",
        ),
    }
)

_CAUSE: Final = record({"object": TEXT, "origin": TEXT, "change": TEXT})
_WAVE: Final = record({"wave": WHOLE, "at": MOMENT, "causes": listed(_CAUSE), "more": WHOLE})
_COMPARABLE: Final = noted(FLAG, "both versions are stored: `/debug/xds/diff` shows the difference")
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
        "seconds": noted(maybe(NUMBER), "seconds until the answer, or since the push without one"),
        "seconds_from_event": noted(maybe(NUMBER), "seconds from the change to the push"),
        "error": maybe(record({"code": WHOLE, "message": TEXT})),
    }
)
PUSHES: Final = record({"at": MOMENT, "proxy": TEXT, "pushes": noted(listed(PUSH), "newest first")})

_TYPE: Final = record(
    {
        "type_url": TEXT,
        "state": _SYNC,
        "version": noted(TEXT, "last sent version; empty before the first"),
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
        "stream": noted(WHOLE, "number of the stream"),
        "proxy": TEXT,
        "node": maybe(TEXT),
        "user_agent": maybe(TEXT),
        "peer": TEXT,
        "protocol": one_of("delta", "sotw"),
        "since": MOMENT,
        "served": FLAG,
        "types": noted(named(_TYPE), "state of each type"),
    }
)
STREAMS: Final = record({"at": MOMENT, "streams": listed(_STREAM)})
