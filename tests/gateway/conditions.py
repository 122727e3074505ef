"""Differences between the expected and the derived conditions of routes."""

from collections.abc import Iterator
from typing import Any, Final

from catalog.relations.attachment import attachment
from catalog.relations.verdicts import Attachment, ParentVerdict
from catalog.store.gateway import ROUTE_KINDS
from catalog.store.view import View
from meshwright.mesh.kinds import GATEWAY_API
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from tests.gateway.case_files import Case, Document, Stage

_KINDS: Final = {kind.name: kind for kind in ROUTE_KINDS}
_CONDITIONS: Final = ("Accepted", "ResolvedRefs", "PartiallyInvalid")


def condition_differences(view: View, case: Case, stage: Stage) -> list[str]:
    """Return one text for each condition of the routes of a case's stage that is not as expected."""
    return [difference for wanted in stage.status for difference in _differences(view, case, stage, wanted)]


def _differences(view: View, case: Case, stage: Stage, wanted: Document) -> Iterator[str]:
    route = _route(case, stage, wanted)
    derived = attachment(view, route)
    name = f"{route.kind.name} {route.namespace}/{route.name}"
    verdicts = [verdict for verdict in derived.parents if _is_selected(verdict, wanted)]
    if wanted.get("none") or "count" in wanted:
        if len(verdicts) != wanted.get("count", 0):
            yield f"{name}: {wanted.get('count', 0)} parents with a status expected, {len(verdicts)} seen"
        return
    if len(verdicts) != 1:
        yield f"{name}: one status for {wanted} expected, {len(verdicts)} seen"
    for verdict in verdicts:
        seen = _conditions(derived, verdict)
        for condition in (item for item in _CONDITIONS if item in wanted):
            if seen[condition] not in _allowed(wanted[condition]):
                yield f"{name}: {condition} {wanted[condition]} expected, {seen[condition]} seen"


def route_keys(stage: Stage) -> list[ObjectKey]:
    """Return the keys of the routes of the Gateway API in a stage."""
    return [
        ObjectKey(_KINDS[item["kind"]], Namespace(item["metadata"]["namespace"]), item["metadata"]["name"])
        for item in stage.documents
        if item["kind"] in _KINDS and item["apiVersion"].startswith(GATEWAY_API)
    ]


def _route(case: Case, stage: Stage, wanted: Document) -> ObjectKey:
    name = wanted.get("route", case.name)
    (found,) = (key for key in route_keys(stage) if key.name == name)
    assert wanted.get("namespace", found.namespace) == found.namespace, f"{case}: {wanted}"
    return found


def _is_selected(verdict: ParentVerdict, wanted: Document) -> bool:
    return (
        wanted.get("parent", verdict.parent.name) == verdict.parent.name
        and wanted.get("section", verdict.parent.section) == verdict.parent.section
    )


def _conditions(derived: Attachment, verdict: ParentVerdict) -> Document:
    """Return the conditions in the form of the cases, for example `False NoMatchingParent`."""
    resolved = derived.resolved[0]
    return {
        "Accepted": f"{verdict.accepted} {verdict.reason}",
        "ResolvedRefs": f"{not derived.unresolved} {resolved}",
        "PartiallyInvalid": bool(derived.dropped),
    }


def _allowed(expected: Any) -> list[Any]:
    return expected if isinstance(expected, list) else [expected]
