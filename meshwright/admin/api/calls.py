"""The shapes of what is answered of one call: what policy says of it, and how all that it goes by stands."""

from typing import Final

from meshwright.admin.api.proxies import PUSH
from meshwright.admin.api.shape import (
    ANYTHING,
    FIELDS,
    FLAG,
    MOMENT,
    NUMBER,
    TEXT,
    WHOLE,
    listed,
    maybe,
    named,
    noted,
    one_of,
    record,
)

_OBJECT: Final = {"object": TEXT, "origin": TEXT}
_DECIDING: Final = record(
    {
        **_OBJECT,
        "stale": noted(FLAG, "a newer form of it is bad"),
        "decides": noted(FLAG, "it is one of those of `because`"),
        "manifest": noted(maybe(FIELDS), "as it is in force; null of a kind that is not SMI's"),
        "value": noted(
            ANYTHING, "of such a kind what is in force, set out as this release has it; else null"
        ),
    }
)
_EXPLANATION: Final = {
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
    "steps": listed(record({"depth": WHOLE, "text": TEXT, "objects": listed(record(_OBJECT))})),
    "objects": noted(listed(_DECIDING), "the objects in force that have a part in it, 20 at most"),
    "missing": noted(listed(FIELDS), "manifests that would make it a yes, once all of `besides` is right"),
    "besides": listed(TEXT),
}
EXPLAINED: Final = record(
    {
        "at": MOMENT,
        **_EXPLANATION,
        "logged": noted(named(TEXT), "of a line of an access log, what became of the request"),
    }
)

_SENT: Final = record({"state": TEXT, "version": TEXT, "acknowledged_version": TEXT})
_SIDECAR: Final = {
    "proxy": TEXT,
    "workload": noted(maybe(TEXT), "namespace/name"),
    "stands": one_of("in step", "not connected", "held", "failed", "behind", "rejected"),
    "said": noted(TEXT, "why, empty of one that is in step"),
    "lacks": noted(listed(TEXT), "what it is served without that makes this call another one"),
    "rejected": noted(listed(TEXT), "type and name, and its words"),
    "types": noted(named(_SENT), "what it was sent last, and what it has acknowledged"),
    "brought": noted(maybe(PUSH), "the last push that brought it what decides, null where none is known"),
}
_CALLER: Final = record(
    {
        **_SIDECAR,
        "interception": one_of("explicit", "transparent"),
        "called_at": noted(listed(TEXT), "where its workload calls what is asked for"),
    }
)
_ENDPOINT: Final = record(
    {
        "service": TEXT,
        "address": TEXT,
        "identity": maybe(TEXT),
        "workloads": listed(TEXT),
        "proxies": listed(TEXT),
        "given": noted(FLAG, "all of the callers' sidecars are told of it"),
        "withheld": noted(TEXT, "why it gets no traffic, empty where it does"),
        "application": noted(maybe(TEXT), "where the one behind it listens"),
    }
)
CONNECTIVITY: Final = record(
    {
        "at": MOMENT,
        "explained": record(_EXPLANATION),
        "protocol": TEXT,
        "turned_down": noted(
            maybe(WHOLE),
            "the status with which the caller's sidecar answers by itself, 0 where it ends the connection",
        ),
        "callers": listed(_CALLER),
        "endpoints": noted(listed(_ENDPOINT), "all that may answer"),
        "called": noted(listed(record(_SIDECAR)), "the sidecars of those that get traffic"),
    }
)
