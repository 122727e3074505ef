"""Tests of the cost of one edited HTTPRoute: it is the same with ten times as many other routes."""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from catalog.lint.problems import Linter
from catalog.relations.identities import service_identities
from catalog.store.edits import Edits
from meshwright.delivery.snapshots.group_snapshots import GroupSnapshots
from meshwright.delivery.snapshots.published_snapshots import PublishedSnapshots
from meshwright.delivery.snapshots.translation import translation
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.gateway.routes import HTTPRoute
from meshwright.mesh.gateway.rules import Rule
from meshwright.mesh.objects import SourcedObject
from meshwright.mesh.origins import InFile
from meshwright.sidecars.document.driver import DocumentDriver
from meshwright.sidecars.envoy.driver import EnvoyDriver
from meshwright.sidecars.lint import InstalledDrivers
from tests.meshes import gateway as g
from tests.meshes import values as a
from tests.unit.catalog.lint.test_growth import Calls

SERVICES = 30
FEW, MANY = 1, 10
"""Routes of each Service with routes, except for the edited route, which is alone at its Service."""
WAYS = pytest.mark.parametrize("way", ["explicit", "transparent", "permissive"])

EDITS: dict[str, Callable[[int], Rule]] = {
    "another backend": lambda count: _rule(backend=("one", "two")[count % 2]),
    "a weight": lambda count: _rule(weight=count + 2),
    "a header": lambda count: _rule(header=str(count)),
}
EACH_EDIT = pytest.mark.parametrize("edit", EDITS)


def _rule(number: int = 0, backend: str = "two", weight: int = 1, header: str = "none") -> Rule:
    match = g.exact(f"/{number}", ("version", header))
    return Rule((match,), backends=(g.to(backend, weight=weight), g.to("three")))


@dataclass(frozen=True, slots=True)
class Work:
    """Work of an edit: computed values, made pieces, changed groups, and calls of any function."""

    computed: int
    encoded: int
    groups: int
    calls: int


class Server:
    """A linted and served mesh, whose caller may call every Service, in one of three ways.

    The caller has upstreams (explicit interception), is redirected (transparent), or is in a mesh in
    permissive mode. Names differ from server to server, so that no cache of the driver has values of another.
    """

    def __init__(self, way: str, routed: int, routes: int) -> None:
        self.names = [f"{way}-{routed}-{routes}-{number}" for number in range(SERVICES)]
        first = self._route(self.names[0], 0, _rule())
        others = (
            self._route(name, number, _rule(number))
            for name in self.names[1:routed]
            for number in range(routes)
        )
        self.view = g.view(*_objects(way, self.names), first, *others)
        self.linter = Linter(
            self.view, lambda: InstalledDrivers({"document": DocumentDriver(), "envoy": EnvoyDriver()}, {})
        )
        self.serving = GroupSnapshots(self.view, translation(EnvoyDriver()))
        certificates = {identity: a.certificate(identity, "1") for identity in service_identities(self.view)}
        self.serving.rendering.certify(certificates, b"ROOT")
        self.published = PublishedSnapshots()
        self._wave(Edits())

    def work(self, rule: Rule) -> Work:
        """Change the first route, and return the work."""
        route = self._route(self.names[0], 0, rule)
        key = g.key_of(route)
        edits = Edits({key: SourcedObject(key, route, InFile("routes", 1, 1))})
        graph, rendering, calls = self.view.graph, self.serving.rendering, Calls()
        computed, encoded = graph.computed, rendering.encoded
        with calls:
            groups = self._wave(edits)
        return Work(graph.computed - computed, rendering.encoded - encoded, groups, calls.count)

    def _route(self, service: str, number: int, rule: Rule) -> HTTPRoute:
        return g.http_route(f"{service}-{number}", rule, parents=(g.parent(service, port=80),))

    def _wave(self, edits: Edits) -> int:
        """Apply edits, serve and lint; return the number of groups with changed resources."""
        self.view.apply(edits)
        touched = sorted(self.serving.touched(), key=repr)
        (step,) = [item for item in self.serving.steps(self.published, touched) if item is not None]
        assert not any(step.failed.values())
        before, self.published = self.published, step.after(self.published)
        for _ in self.linter.looks():
            pass
        changed = (
            now.changed_since(before.snapshots.get(name))
            for name, now in step.snapshots.items()
            if now is not None
        )
        return sum(map(bool, changed))


def _objects(way: str, names: list[str]) -> Iterator[object]:
    """Yield all objects but the routes: the caller, three backends, and Services with these names."""
    upstreams = ((name, 80, "127.0.0.1", 20000 + number) for number, name in enumerate(names))
    interception = a.explicit(None, *upstreams) if way == "explicit" else a.TRANSPARENT
    yield a.workload("caller", "10.0.0.9", interception=interception)
    yield MeshConfig(permissive=way == "permissive")
    yield a.tcp_route("all")
    for number, name in enumerate(("one", "two", "three"), 1):
        yield a.service(name, address=f"10.1.1.{number}")
        yield a.workload(name, f"10.0.0.{number}")
        yield a.target(name, "caller", name, a.tcp("all"))
    for number, name in enumerate(names, 1):
        yield a.service(name, app="one", address=f"10.1.2.{number}")


@functools.cache
def server(way: str, routed: int, routes: int) -> Server:
    """Return a server, made once for all tests; `routed` Services have `routes` routes each."""
    return Server(way, routed, routes)


def _works(servers: tuple[Server, Server], edit: str) -> Iterator[tuple[Work, Work]]:
    """Yield the work of both servers for several edits."""
    for each in servers:
        each.work(_rule())  # the same state in both, whatever was tested before
    for count in range(4):
        yield servers[0].work(EDITS[edit](count)), servers[1].work(EDITS[edit](count))


@WAYS
@EACH_EDIT
def test_edit_of_a_route_costs_the_same_with_many_other_routes(way: str, edit: str) -> None:
    """As many values, pieces and groups are made; the calls of functions grow by at most 5 %."""
    for few, many in _works((server(way, SERVICES, FEW), server(way, SERVICES, MANY)), edit):
        assert (many.computed, many.encoded, many.groups) == (few.computed, few.encoded, few.groups)
        assert many.calls <= 1.05 * few.calls


@WAYS
@EACH_EDIT
def test_edit_of_a_route_costs_little_more_if_all_services_have_routes(way: str, edit: str) -> None:
    """Routes at all Services and not at one alone: the calls of functions grow by at most a fifth."""
    for one, every in _works((server(way, 1, MANY), server(way, SERVICES, MANY)), edit):
        assert every.groups == one.groups
        assert every.calls <= 1.2 * one.calls


@WAYS
def test_edit_of_a_weight_makes_one_piece(way: str) -> None:
    """The counts above are not zero: one route configuration is made, which some proxies get."""
    edited = server(way, SERVICES, MANY)
    edited.work(_rule())
    work = edited.work(_rule(weight=7))
    assert work.encoded == 1
    assert work.groups > 0
