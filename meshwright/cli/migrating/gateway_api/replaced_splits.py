"""The manifests that replace a mesh's TrafficSplits, each accepted by the Gateway API, and the report."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, count

from catalog.store.gateway import gateway_routes
from catalog.store.smi import splits, splits_by_apex
from catalog.store.view import View
from meshwright.cli.migrating.findings import Document, Finding, MigrationStatus
from meshwright.cli.migrating.gateway_api.manifests import manifest
from meshwright.cli.migrating.gateway_api.ordered_matches import OrderError
from meshwright.cli.migrating.gateway_api.routes import NewRoute, Unwritable, routes_of
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.origins import InFile
from meshwright.mesh.problems.problem import Severity
from meshwright.mesh.service import ServiceKey
from meshwright.specs.reader import read


@dataclass(frozen=True, slots=True)
class ReplacedSplits:
    """Manifests of new routes, and one finding for each Service with TrafficSplits."""

    manifests: tuple[Document, ...]
    findings: tuple[Finding, ...]


def replaced_splits(view: View) -> ReplacedSplits:
    """Return the routes for all Services with TrafficSplits, sorted by Service.

    A Service gets all of its routes or none. No route has the name of another route, because it would replace
    that route.
    """
    taken = set(gateway_routes(view))
    manifests: list[Document] = []
    findings: list[Finding] = []
    for key in sorted({split.apex for split in splits(view).values()}):
        replaced = ", ".join(sorted(str(split.key) for split in splits_by_apex(view).lookup(key)))
        try:
            manifests += _of_service(view, key, taken)
        except (Unwritable, OrderError) as error:
            text = f"TrafficSplit {replaced} stays in force, because there is no equivalent route: {error}"
            findings.append(Finding(f"Service {key}", MigrationStatus.TO_DO, text))
            continue
        text = f"the new route replaces TrafficSplit {replaced}"
        do = f"after the route is accepted, delete TrafficSplit {replaced}"
        findings.append(Finding(f"Service {key}", MigrationStatus.REWRITTEN, text, do=do))
    return ReplacedSplits(tuple(manifests), tuple(findings))


def _of_service(view: View, key: ServiceKey, taken: set[ObjectKey]) -> list[Document]:
    """Return the manifests of a Service's routes, and add their keys; raise Unwritable or OrderError."""
    made: list[Document] = []
    for route in routes_of(view, key):
        new = next(new for new in _proposed(view, route) if new not in taken)
        taken.add(new)
        made.append(manifest(view, route, new.name))
        _check(made[-1])
    return made


def _proposed(view: View, route: NewRoute) -> Iterator[ObjectKey]:
    name = str(route.service.name)
    if len(view.services[route.service].ports) > 1:
        name = f"{name}-{route.port.port}"
    names = chain([name], (f"{name}-route-{number}" for number in count(2)))
    yield from (ObjectKey(route.kind, route.service.namespace, name) for name in names)


def _check(document: Document) -> None:
    """Raise Unwritable if the Gateway API does not accept a manifest, or if a rule would not be in force."""
    reading = read(document, InFile("route.yaml"))
    errors = [item.clause for item in reading.problems if item.severity is Severity.ERROR]
    for _, route in reading.objects:
        errors += [rule.dropped for rule in getattr(route, "rules", ()) if rule.dropped]
    if errors:
        raise Unwritable(f"a route cannot have its {errors[0]}")
