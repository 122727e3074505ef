"""JSON shapes of the API's answers about one request: explanation and connectivity."""

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
        "stale": noted(FLAG, "an older version is in force, because a newer one is invalid"),
        "decides": noted(FLAG, "the object is in `because`"),
        "manifest": noted(maybe(FIELDS), "the manifest in force, for kinds of SMI; null for other kinds"),
        "value": noted(ANYTHING, "the value in force for other kinds, in a form of this release; else null"),
    }
)
_EXPLANATION: Final = {
    "from": TEXT,
    "to": TEXT,
    "method": TEXT,
    "path": TEXT,
    "headers": listed(listed(TEXT)),
    "answer": noted(TEXT, "the answer in force; the answer of policy if the former is unknown"),
    "policy": noted(TEXT, "the answer of policy, for example allowed, refused, unreachable or depends"),
    "in_force": TEXT,
    "in_force_because": listed(TEXT),
    "headline": TEXT,
    "because": noted(listed(TEXT), "the deciding objects"),
    "backends": listed(
        record({"service": TEXT, "weight": NUMBER, "admitted": listed(TEXT), "refused": listed(TEXT)})
    ),
    "steps": listed(record({"depth": WHOLE, "text": TEXT, "objects": listed(record(_OBJECT))})),
    "objects": noted(listed(_DECIDING), "the involved objects in force, at most 20"),
    "missing": noted(
        listed(FIELDS), "manifests that would allow the request, after all of `besides` is done"
    ),
    "besides": listed(TEXT),
}
EXPLAINED: Final = record(
    {
        "at": MOMENT,
        **_EXPLANATION,
        "logged": noted(named(TEXT), "the outcome of the request in the given access log line"),
    }
)

_SENT: Final = record({"state": TEXT, "version": TEXT, "acknowledged_version": TEXT})
_SIDECAR: Final = {
    "proxy": TEXT,
    "workload": noted(maybe(TEXT), "namespace/name"),
    "stands": one_of("in step", "not connected", "held", "failed", "behind", "rejected"),
    "said": noted(TEXT, "the cause; empty for a sidecar in step"),
    "lacks": noted(listed(TEXT), "missing resources that change the outcome of this request"),
    "rejected": noted(listed(TEXT), "type and name of each rejected resource, and the error of the proxy"),
    "types": noted(named(_SENT), "last sent and last acknowledged version, by type"),
    "brought": noted(maybe(PUSH), "the last push with deciding resources; null if unknown"),
}
_CALLER: Final = record(
    {
        **_SIDECAR,
        "interception": one_of("explicit", "transparent"),
        "called_at": noted(listed(TEXT), "addresses at which its workload calls the destination"),
    }
)
_ENDPOINT: Final = record(
    {
        "service": TEXT,
        "address": TEXT,
        "identity": maybe(TEXT),
        "workloads": listed(TEXT),
        "proxies": listed(TEXT),
        "given": noted(FLAG, "all sidecars of the callers have the endpoint"),
        "withheld": noted(TEXT, "the reason why the endpoint does not get traffic; empty if it gets traffic"),
        "application": noted(maybe(TEXT), "address of the application"),
    }
)
CONNECTIVITY: Final = record(
    {
        "at": MOMENT,
        "explained": record(_EXPLANATION),
        "protocol": TEXT,
        "turned_down": noted(
            maybe(WHOLE),
            "HTTP status that the caller's sidecar answers itself; 0 if it closes the connection",
        ),
        "callers": listed(_CALLER),
        "endpoints": noted(listed(_ENDPOINT), "all endpoints that may answer"),
        "called": noted(listed(record(_SIDECAR)), "sidecars of the endpoints that get traffic"),
    }
)
