"""Shapes of the other answers of API version 1; fields may be added, and are never removed."""

from collections.abc import Mapping
from typing import Final

from meshwright.admin.api.shape import (
    ANYTHING,
    FIELDS,
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
        "verdict": noted(VERDICT, "the worst verdict of all parts"),
        "sentence": noted(TEXT, "the sentence of the first part with the worst verdict"),
        "parts": listed(record({"part": TEXT, "path": TEXT, "verdict": VERDICT, "sentence": TEXT})),
    }
)

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
        "cn": noted(TEXT, "common name of the certificate, equal to the name of the proxy"),
        "serial": TEXT,
        "state": TEXT,
        "in_force": FLAG,
        "expired": FLAG,
        "issued_at": MOMENT,
        "not_after": MOMENT,
        "claim_by": maybe(MOMENT),
        "claimed_at": maybe(MOMENT),
        "claimed_from": noted(maybe(TEXT), "IP address of the first connection"),
        "first_ready_at": maybe(MOMENT),
        "last_seen": maybe(MOMENT),
        "revoked_at": maybe(MOMENT),
        "revoked_why": maybe(TEXT),
        "term_seconds": noted(
            maybe(WHOLE), "requested lifetime, which renewals use again; null for the default of the server"
        ),
        "joined_by": noted(
            maybe(TEXT),
            "kind of proof with which the holder joined; null for a certificate issued by a command",
        ),
        "signer": maybe(TEXT),
    }
)
_PARTICIPANT: Final = record(
    {
        "cn": TEXT,
        "takes_part": FLAG,
        "lacks": noted(listed(TEXT), "missing requirements for taking part in the mesh"),
        "serial": noted(maybe(TEXT), "serial of the proxy certificate"),
        "service_certificate": noted(
            maybe(record({"serial": TEXT, "not_after": MOMENT})),
            "the certificate that the sidecar presents to other workloads",
        ),
    }
)
_AUTHORITY: Final = record(
    {
        "kind": TEXT,
        "place": TEXT,
        "signer": TEXT,
        "not_after": maybe(MOMENT),
        "formers": noted(
            listed(record({"roots": listed(TEXT), "until": maybe(MOMENT)})),
            "former CAs that are still trusted",
        ),
    }
)
CERTIFICATES: Final = record(
    {
        "at": MOMENT,
        "authority": noted(_AUTHORITY, "the CA that signs proxy certificates"),
        "service_certificates": listed(_SERVICE_CERTIFICATE),
        "participants": noted(listed(_PARTICIPANT), "every proxy, with its part in the mesh"),
        "proxy_certificates": listed(_PROXY_CERTIFICATE),
    }
)

_OBJECT: Final = record(
    {
        "kind": TEXT,
        "namespace": TEXT,
        "name": TEXT,
        "origin": TEXT,
        "stale": FLAG,
        "value": noted(ANYTHING, "the parsed object, in a form of this release"),
    },
    {
        "attachment": noted(
            record(
                {
                    "parents": listed(
                        record(
                            {
                                "service": TEXT,
                                "ports": noted(listed(WHOLE), "the ports where the route is in force"),
                                "accepted": FLAG,
                                "reason": TEXT,
                                "message": TEXT,
                            }
                        )
                    ),
                    "references": record({"resolved": FLAG, "reason": TEXT, "message": TEXT}),
                    "dropped": noted(maybe(TEXT), "rules that are not in force although others are"),
                }
            ),
            "of one route of the Gateway API: the verdicts, as in its status",
        )
    },
)
PROBLEM: Final = record(
    {
        "severity": TEXT,
        "code": TEXT,
        "object": maybe(TEXT),
        "origin": TEXT,
        "field": TEXT,
        "value": TEXT,
        "expected": TEXT,
        "line": noted(TEXT, "the whole problem in one line"),
    }
)
POLICIES: Final = record(
    {
        "at": MOMENT,
        "objects": noted(listed(_OBJECT), "objects in force; `stale` means that a newer version is invalid"),
        "problems": listed(PROBLEM),
        "failures": noted(
            listed(record({"group": TEXT, "error": TEXT, "kept": FLAG})),
            "groups of proxies whose configuration cannot be computed",
        ),
    }
)


def _ago(name: str) -> Mapping[str, Shape]:
    """Return the fields for an age, as text and in seconds; both are null if the event never happened."""
    return {name: maybe(TEXT), f"{name}_seconds": maybe(NUMBER)}


_WATCH: Final = record(
    {
        "name": TEXT,
        "namespace": TEXT,
        "heard": maybe(MOMENT),
        **_ago("heard_age"),
        "last_event": maybe(MOMENT),
        **_ago("event_age"),
        "last_list": maybe(MOMENT),
        **_ago("list_age"),
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
        **_ago("event_age"),
        "last_full_read": maybe(MOMENT),
        **_ago("age"),
        "objects": record({"good": WHOLE, "stale": WHOLE, "refused": WHOLE}),
        "held": noted(
            listed(TEXT),
            "parts, such as a kind, that stay in force although the source reported them as empty",
        ),
        "error": maybe(TEXT),
        "error_since": maybe(MOMENT),
        "watches": listed(_WATCH),
    }
)
SOURCES: Final = record({"at": MOMENT, "sources": listed(_SOURCE)})

CONFIG: Final = record(
    {
        "at": MOMENT,
        "mesh_config": noted(maybe(FIELDS), "the MeshConfig in force, in a form of this release"),
        "settings": noted(FIELDS, "the settings of the server by name, without secrets"),
        "listening": noted(named(TEXT), "addresses of the listeners, by purpose"),
    }
)

_LATE: Final = record(
    {
        "at": MOMENT,
        "seconds": NUMBER,
        "doing": noted(maybe(TEXT), "the step of the wave at that moment; null without a wave"),
    }
)
LOOP: Final = record(
    {"at": MOMENT, "late": noted(listed(_LATE), "moments at which the event loop was blocked, newest first")}
)

_HOST: Final = record({"address": TEXT, "names": listed(TEXT)})
HOSTS: Final = record({"at": MOMENT, "hosts": noted(listed(_HOST), "lines of a hosts file")})
