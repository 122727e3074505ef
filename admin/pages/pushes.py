"""Pushes as they are shown: what one response brought, what it was due to, and what was said to it."""

from admin.pages.jsonable import Document, jsonable
from delivery.history.push import Push
from sidecars.type_words import short_type


def push(shown: Push) -> Document:
    """Return one push."""
    return {
        "at": jsonable(shown.at),
        "trigger": trigger(shown),
        "type": short_type(shown.type_url),
        "protocol": shown.protocol.value,
        "nonce": shown.nonce,
        "version": shown.version,
        "added": list(shown.added),
        "changed": [{"name": name, "from": before, "to": after} for name, before, after in shown.changed],
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


def trigger(shown: Push) -> Document:
    """Return what a push was due to: why, and the waves with the objects that changed."""
    return {
        "why": shown.trigger.value,
        "waves": [
            {
                "wave": wave.number,
                "at": jsonable(wave.at),
                "causes": [
                    {"object": f"{each.kind} {each.name}", "origin": each.origin, "change": each.change}
                    for each in wave.causes
                ],
                "more": wave.more,
            }
            for wave in shown.waves
        ],
    }
