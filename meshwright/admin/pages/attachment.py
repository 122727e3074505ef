"""State of a Gateway API route: where it is attached, and whether its references are resolved."""

from catalog.relations.attachment import attachment
from catalog.relations.verdicts import resolution
from catalog.store.gateway import route_of
from catalog.store.view import View
from meshwright.admin.jsonable import Document, Json
from meshwright.mesh.objects import ObjectKey


def attachment_of(view: View | None, key: ObjectKey) -> Document | None:
    """Return the verdicts about a route as JSON, as its status has them; None for any other object."""
    if view is None or route_of(view, key) is None:
        return None
    decided = attachment(view, key)
    reason, message = resolution(decided.unresolved)
    parents: list[Json] = [
        {
            "service": str(verdict.service),
            "ports": list[Json](verdict.ports),
            "accepted": verdict.accepted,
            "reason": str(verdict.reason),
            "message": verdict.message,
        }
        for verdict in decided.parents
    ]
    references: Document = {"resolved": not decided.unresolved, "reason": str(reason), "message": message}
    return {"parents": parents, "references": references, "dropped": decided.dropped or None}
