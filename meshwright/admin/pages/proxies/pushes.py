"""Pushes as JSON: content, cause and answer of a response."""

from collections.abc import Callable

from meshwright.admin.jsonable import Document, Json, jsonable
from meshwright.delivery.history.push import Push
from meshwright.sidecars.type_words import short_type
from xds.protocol.resources.resource import ResourceName, TypeUrl, Version

Kept = Callable[[TypeUrl, ResourceName, Version], bool]
"""Check of whether a version of a resource is stored and may be shown."""


def push(shown: Push, kept: Kept) -> Document:
    """Return one push; a changed resource is `comparable` if both of its versions are stored."""
    return {
        "at": jsonable(shown.at),
        "trigger": trigger(shown),
        "type": short_type(shown.type_url),
        "protocol": shown.protocol.value,
        "nonce": shown.nonce,
        "version": shown.version,
        "added": list(shown.added),
        "changed": _changed(shown, kept),
        "removed": list(shown.removed),
        "again": shown.again,
        "bytes": shown.size,
        "answer": shown.answer.value,
        "seconds": None if shown.seconds is None else round(shown.seconds, 4),
        "seconds_from_event": None if shown.since_event is None else round(shown.since_event, 4),
        "error": None
        if shown.rejection is None
        else {"code": shown.rejection.code, "message": shown.rejection.message},
    }


def _changed(shown: Push, kept: Kept) -> list[Json]:
    return [
        {
            "name": name,
            "from": before,
            "to": after,
            "comparable": all(kept(shown.type_url, name, version) for version in (before, after)),
        }
        for name, before, after in shown.changed
    ]


def trigger(shown: Push) -> Document:
    """Return the cause of a push: the reason, and the waves with the changed objects."""
    return {
        "why": shown.trigger.value,
        "waves": [
            {
                "wave": wave.number,
                "at": jsonable(wave.at),
                "causes": [
                    {"object": f"{cause.kind} {cause.name}", "origin": cause.origin, "change": cause.change}
                    for cause in wave.causes
                ],
                "more": wave.more,
            }
            for wave in shown.waves
        ],
    }
