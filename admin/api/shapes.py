"""The shapes of the answers of the first version: fields are added here, and none is ever taken away."""

from typing import Final

from admin.api.shape import (
    FLAG,
    MOMENT,
    NUMBER,
    TEXT,
    WHOLE,
    Shape,
    listed,
    maybe,
    named,
    noted,
    one_of,
    record,
)

VERDICT: Final = one_of("ok", "warning", "failed", "info")

OVERVIEW: Final = record(
    {
        "at": MOMENT,
        "verdict": noted(VERDICT, "the worst of the parts"),
        "sentence": noted(TEXT, "the first of the worst parts, in words"),
        "parts": listed(record({"part": TEXT, "path": TEXT, "verdict": VERDICT, "sentence": TEXT})),
    }
)

_PROXY: Final = {
    "name": noted(TEXT, "the common name in its certificate, <uuid>.<service>.<namespace>"),
    "uuid": TEXT,
    "service": TEXT,
    "namespace": TEXT,
    "workload": noted(maybe(TEXT), "namespace/name"),
    "identity": noted(maybe(TEXT), "namespace/service account"),
    "pod": maybe(TEXT),
    "node": maybe(TEXT),
    "state": one_of("connected", "expected", "disconnected"),
    "since": MOMENT,
    "address": maybe(TEXT),
    "protocol": noted(maybe(TEXT), "delta or sotw, null where it has no stream"),
    "streams": WHOLE,
    "why": noted(TEXT, "why it is behind, empty where it is not"),
    "sync": noted(named(one_of("synced", "pending", "asked", "nacked")), "by type"),
    "pending_seconds": noted(named(NUMBER), "how long an answer is waited for, by type"),
    "held": noted(FLAG, "connected, and nothing can be served to it yet"),
    "admitted": noted(FLAG, "its workload gets traffic"),
    "dead": noted(FLAG, "gone for long, and callers have ejected it"),
    "ejected_by": noted(listed(TEXT), "proxies that have ejected an endpoint of it"),
}
PROXIES: Final = record({"at": MOMENT, "proxies": listed(record(_PROXY))})

_LINES: Final = listed(record({"text": TEXT}))
PROXY: Final = record(
    {
        "at": MOMENT,
        **_PROXY,
        "rejected": noted(listed(TEXT), "type and name, its words, the object at fault"),
        "left_out": noted(listed(TEXT), "what its kind of proxy cannot do"),
        "listeners": _LINES,
        "routes": _LINES,
        "clusters": _LINES,
        "endpoints": _LINES,
        "secrets": listed(record({"name": TEXT, "serial": maybe(TEXT), "not_after": maybe(MOMENT)})),
    }
)

_CAUSE: Final = record({"object": TEXT, "origin": TEXT, "change": TEXT})
_WAVE: Final = record({"wave": WHOLE, "at": MOMENT, "causes": listed(_CAUSE), "more": WHOLE})
_PUSH: Final = record(
    {
        "at": MOMENT,
        "trigger": record({"why": TEXT, "waves": listed(_WAVE)}),
        "type": TEXT,
        "protocol": TEXT,
        "nonce": TEXT,
        "version": TEXT,
        "added": listed(TEXT),
        "changed": listed(record({"name": TEXT, "from": TEXT, "to": TEXT})),
        "removed": listed(TEXT),
        "again": WHOLE,
        "bytes": WHOLE,
        "answer": one_of("pending", "ack", "nack", "overtaken", "stream ended"),
        "seconds": noted(maybe(NUMBER), "to the answer, or how long it has been waited for"),
        "seconds_from_event": noted(maybe(NUMBER), "from the change to the moment it was sent"),
        "error": maybe(record({"code": WHOLE, "message": TEXT})),
    }
)
PUSHES: Final = record({"at": MOMENT, "proxy": TEXT, "pushes": noted(listed(_PUSH), "newest first")})

_SERVICE_CERTIFICATE: Final = record(
    {
        "identity": TEXT,
        "serial": TEXT,
        "uri": TEXT,
        "dns_names": listed(TEXT),
        "not_before": MOMENT,
        "not_after": MOMENT,
        "seconds_left": WHOLE,
    }
)
_PROXY_CERTIFICATE: Final = record(
    {
        "proxy": TEXT,
        "serial": TEXT,
        "state": TEXT,
        "in_force": FLAG,
        "expired": FLAG,
        "issued_at": MOMENT,
        "not_after": MOMENT,
        "claim_by": maybe(MOMENT),
        "claimed_at": maybe(MOMENT),
        "last_seen": maybe(MOMENT),
        "revoked_at": maybe(MOMENT),
        "revoked_why": maybe(TEXT),
        "signer": maybe(TEXT),
    }
)
_AUTHORITY: Final = record({"kind": TEXT, "place": TEXT, "signer": TEXT, "not_after": maybe(MOMENT)})
CERTIFICATES: Final = record(
    {
        "at": MOMENT,
        "authority": noted(_AUTHORITY, "who signs for proxies"),
        "service_certificates": listed(_SERVICE_CERTIFICATE),
        "proxy_certificates": listed(_PROXY_CERTIFICATE),
    }
)

_OBJECT: Final = record({"kind": TEXT, "namespace": TEXT, "name": TEXT, "origin": TEXT, "stale": FLAG})
PROBLEM: Final = record(
    {
        "severity": TEXT,
        "code": TEXT,
        "object": maybe(TEXT),
        "origin": TEXT,
        "field": TEXT,
        "value": TEXT,
        "expected": TEXT,
        "line": noted(TEXT, "all of it"),
    }
)
POLICIES: Final = record(
    {
        "at": MOMENT,
        "objects": noted(listed(_OBJECT), "in force; stale: a newer form of it is bad"),
        "problems": listed(PROBLEM),
        "failures": noted(
            listed(record({"group": TEXT, "error": TEXT, "kept": FLAG})), "groups that cannot be computed"
        ),
    }
)

_NAMED: Final = record({"object": TEXT, "origin": TEXT})
_MANIFEST: Final[Shape] = {"type": "object"}
_DECIDING: Final = record(
    {
        "object": TEXT,
        "origin": TEXT,
        "stale": noted(FLAG, "a newer form of it is bad"),
        "decides": noted(FLAG, "it is one of those of `because`"),
        "manifest": noted(maybe(_MANIFEST), "as it is in force; null of a kind that is not SMI's"),
    }
)
EXPLAINED: Final = record(
    {
        "at": MOMENT,
        "from": TEXT,
        "to": TEXT,
        "method": TEXT,
        "path": TEXT,
        "headers": listed(listed(TEXT)),
        "answer": noted(TEXT, "what is in force, or what policy says where that is not known"),
        "policy": noted(TEXT, "what policy says: such as allowed, refused, unreachable, depends"),
        "in_force": TEXT,
        "in_force_because": listed(TEXT),
        "headline": TEXT,
        "because": noted(listed(TEXT), "the objects that decide"),
        "backends": listed(
            record({"service": TEXT, "weight": NUMBER, "admitted": listed(TEXT), "refused": listed(TEXT)})
        ),
        "steps": listed(record({"depth": WHOLE, "text": TEXT, "objects": listed(_NAMED)})),
        "objects": noted(listed(_DECIDING), "the objects in force that have a part in it, 20 at most"),
        "missing": noted(listed(_MANIFEST), "manifests that would have to be added for a yes"),
        "besides": listed(TEXT),
    }
)

_WATCH: Final = record(
    {
        "name": TEXT,
        "namespace": TEXT,
        "heard": maybe(MOMENT),
        "last_event": maybe(MOMENT),
        "last_list": maybe(MOMENT),
        "relists": WHOLE,
        "events": WHOLE,
        "errors": named(WHOLE),
        "error": maybe(TEXT),
        "error_since": maybe(MOMENT),
    }
)
_SOURCE: Final = record(
    {
        "name": TEXT,
        "last_event": maybe(MOMENT),
        "event_age_seconds": maybe(NUMBER),
        "last_full_read": maybe(MOMENT),
        "age_seconds": maybe(NUMBER),
        "objects": record({"good": WHOLE, "stale": WHOLE, "refused": WHOLE}),
        "held": noted(listed(TEXT), "in force although the source says that it is gone"),
        "error": maybe(TEXT),
        "error_since": maybe(MOMENT),
        "watches": listed(_WATCH),
    }
)
SOURCES: Final = record({"at": MOMENT, "sources": listed(_SOURCE)})
