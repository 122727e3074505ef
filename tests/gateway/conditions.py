"""Differences between the expected conditions of routes and `status.parents` as Meshwright writes it."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from catalog.relations.attachment import attachment
from catalog.store.gateway import ROUTE_KINDS
from catalog.store.view import View
from meshwright.kubernetes.status.parents.entries import merged_entries, wanted_entries
from meshwright.mesh.kinds import GATEWAY_API
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from tests.gateway.case_files import Case, Document, Stage

_KINDS: Final = {kind.name: kind for kind in ROUTE_KINDS}
_CONDITIONS: Final = ("Accepted", "ResolvedRefs", "PartiallyInvalid")
_NOW: Final = datetime(2026, 11, 30, tzinfo=UTC)
_FOREIGN: Final = {
    "parentRef": {"name": "edge"},
    "controllerName": "other.example/controller",
    "conditions": [{"type": "Accepted", "status": "True", "reason": "Accepted", "observedGeneration": 7}],
}


def condition_differences(view: View, case: Case, stage: Stage) -> list[str]:
    """Return one text for each condition of the routes of a case's stage that is not as expected."""
    return [difference for wanted in stage.status for difference in _differences(view, case, stage, wanted)]


def _differences(view: View, case: Case, stage: Stage, wanted: Document) -> Iterator[str]:
    route = _route(case, stage, wanted)
    name = f"{route['kind']} {route['metadata']['namespace']}/{route['metadata']['name']}"
    written = _written(view, route)
    yield from (f"{name}: {fault}" for fault in _faults(route, written))
    entries = [entry for entry in written[1:] if _is_selected(entry["parentRef"], wanted)]
    number = 0 if wanted.get("none") else wanted.get("count", 1)
    if len(entries) != number:
        yield f"{name}: {number} entries for {wanted} expected, {len(entries)} seen"
    for entry in entries:
        seen = {item["type"]: f"{item['status']} {item['reason']}" for item in entry["conditions"]}
        # A condition about dropped rules must be there only if there are some.
        for condition in (item for item in _CONDITIONS if item in wanted or item == "PartiallyInvalid"):
            if seen.get(condition) not in _allowed(wanted.get(condition)):
                yield f"{name}: {condition} {wanted.get(condition)} expected, {seen.get(condition)} seen"


def _written(view: View, route: Document) -> list[Mapping[str, Any]]:
    """Return the entries of a route in the cluster, which had one of another controller before."""
    decided = attachment(view, _key(route))
    entries = wanted_entries(decided, route["metadata"]["generation"])
    return merged_entries({**route, "status": {"parents": [_FOREIGN]}}, entries, _NOW)


def _faults(route: Document, written: list[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what is wrong with entries whatever their conditions say."""
    if written[0] != _FOREIGN:
        yield f"the entry of another controller has become {written[0]}"
    for entry in written[1:]:
        if entry["parentRef"] not in route["spec"]["parentRefs"]:
            yield f"parentRef {entry['parentRef']} is not as written"
        for item in entry["conditions"]:
            if (
                item["observedGeneration"] != route["metadata"]["generation"]
                or not item["lastTransitionTime"]
            ):
                yield f"the generation or time of {item} is wrong"
            if item["type"] == "PartiallyInvalid" and not item["message"].startswith("Dropped Rule"):
                yield f"the message {item['message']!r} does not begin with the specification's words"


def route_keys(stage: Stage) -> list[ObjectKey]:
    """Return the keys of the routes of the Gateway API in a stage."""
    return [_key(route) for route in _routes(stage)]


def _routes(stage: Stage) -> Iterator[Document]:
    for item in stage.documents:
        if item["kind"] in _KINDS and item["apiVersion"].startswith(GATEWAY_API):
            yield item


def _key(route: Document) -> ObjectKey:
    metadata = route["metadata"]
    return ObjectKey(_KINDS[route["kind"]], Namespace(metadata["namespace"]), metadata["name"])


def _route(case: Case, stage: Stage, wanted: Document) -> Document:
    name = wanted.get("route", case.name)
    (found,) = (route for route in _routes(stage) if route["metadata"]["name"] == name)
    namespace = found["metadata"]["namespace"]
    assert wanted.get("namespace", namespace) == namespace, f"{case}: {wanted}"
    return found


def _is_selected(parent: Document, wanted: Document) -> bool:
    return wanted.get("parent", parent["name"]) == parent["name"] and wanted.get(
        "section", parent.get("sectionName")
    ) == parent.get("sectionName")


def _allowed(expected: Any) -> list[Any]:
    return expected if isinstance(expected, list) else [expected]
