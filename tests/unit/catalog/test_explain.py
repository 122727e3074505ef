"""An explanation says what the oracle decides; what it says is missing makes, added, a yes."""

from random import Random

import yaml

from catalog.decide import Answer, Request, backends, decide, places, split_for
from catalog.explain import Explanation, explain
from catalog.explain_remedy import remedy
from catalog.view import MeshSettings, View
from mesh.config import MeshConfig
from mesh.names import Port
from mesh.objects import ObjectKey, Origin
from providers.manifests import Manifests
from tests.differential.cases import Document, case
from tests.differential.topology import documents
from tests.unit.catalog.build import (
    TCP,
    http,
    identity,
    match,
    port,
    route_group,
    service,
    service_key,
    split,
    target,
    tcp,
    tcp_route,
    view,
    workload,
)


def text(*manifests: Document) -> str:
    """Return manifests as a file."""
    return yaml.dump_all(manifests, Dumper=yaml.CSafeDumper)


TOPOLOGY = Manifests().apply("a.yaml", text(*documents()))


def read(*policy: Document) -> Manifests:
    """Read a policy over the topology."""
    return TOPOLOGY.apply("b.yaml", text(*policy))


def seen(state: Manifests) -> View:
    """Return the mesh that manifests describe."""
    return View.build(state.objects(), state.inventory(), MeshSettings())


def anybody(mesh: View, request: Request) -> bool:
    """Say whether anybody at all stands behind what is called."""
    called = mesh.services[request.service].port(request.port)
    assert called is not None
    found = backends(mesh, request, called, split_for(mesh, request, called))
    return any(weight > 0 and places(mesh, key, each) for key, each, weight in found)


def test_what_is_missing_makes_it_a_yes() -> None:
    """For random policies and requests: the manifests are read without a word, and the answer is yes."""
    mended = 0
    for seed in range(30):
        made = case(Random(seed), 8)  # noqa: S311 - test data
        mesh = seen(read(*made.documents))
        for request in (each.request for each in made.requests):
            missing = remedy(mesh, request)
            answer = decide(mesh, request).answer
            if not missing:
                assert answer is Answer.ALLOWED or not anybody(mesh, request)
                continue
            assert answer is not Answer.ALLOWED
            state = read(*made.documents, *missing)
            assert [each for each in state.problems() if each.origin.document > len(made.documents)] == []
            assert decide(seen(state), request).answer is Answer.ALLOWED, (seed, request)
            mended += 1
    assert mended > 75


MESH = (
    service("shop", port(80, name="web"), port(3306, 3306, TCP, name="db")),
    service("v2", port(80)),
    workload("shop", "10.0.0.1"),
    workload("v2", "10.0.0.2"),
    workload("buyer", "10.0.0.8"),
    route_group("books", match("books", "/books.*", "GET", headers=(("x-tag", "a"),))),
    tcp_route("db", 3306),
)


def explained(*things: object, path: str = "/", number: int = 80, name: str = "shop") -> Explanation:
    """Explain the buyer's GET."""
    request = Request(identity("buyer"), service_key(name), Port(number), "GET", path)
    return explain(view(*MESH, *things), request)


def texts(found: Explanation) -> list[str]:
    """Return the sentences, indented as they are shown."""
    return ["  " * step.depth + step.text for step in found.steps]


def test_a_refusal_step_by_step() -> None:
    """Port, place, targets with what each says, matches with what each lacks, and the answer."""
    lacks = "the path must be /books.* in full and header x-tag must be a"
    found = explained(
        target("a", "buyer", "shop", http("books")),
        target("b", "thief", "shop", http("books")),
        target("c", "buyer", "shop", tcp("db")),
        path="/other",
    )
    assert texts(found) == [
        "Service default/shop has port 80, which speaks http, by its appProtocol",
        "default/shop is answered by default/shop at port 8080",
        "  TrafficTarget default/a admits other requests there",
        "    HTTPRouteGroup default/books, match books: does not fit, for " + lacks,
        "  TrafficTarget default/b names other sources than default/buyer: default/thief",
        "  TrafficTarget default/c admits other ports",
        "refused: the server's sidecar answers 403, or closes the connection where it is TCP",
    ]
    key = ObjectKey("TrafficTarget", found.request.service.namespace, "a")
    assert found.steps[2].objects == ((key, Origin("test", 1, 8)),)


def test_splits_and_shares_are_told() -> None:
    """Which split decides, which does not count, who gets no share and why."""
    found = explained(
        split("s", "shop", ("shop", 3), ("v2", 1), ("gone", 1)),
        split("t", "shop", ("v2", 1)),
        target("t", "buyer", "shop", tcp("db")),
        number=3306,
    )
    assert found.decision.answer is Answer.ALLOWED
    assert texts(found)[1:] == [
        "TrafficSplit default/s says who answers, for it comes first: shop 3, v2 1, gone 1",
        "TrafficSplit default/t does not count here",
        "default/v2 lacks a port for it; it gets no share",
        "default/gone does not exist; it gets no share",
        "default/shop (weight 3) is answered by default/shop at port 3306",
        "  TrafficTarget default/t admits it",
        "    TCPRoute default/db: 3306",
        "allowed",
    ]
    assert found.missing == ()


def test_what_no_policy_mends() -> None:
    """No such service, no such port, nobody behind it: said, and nothing to add."""
    for made in (explained(name="gone"), explained(number=81), explained(service("empty"), name="empty")):
        assert made.missing == ()
        assert made.steps[-1].text.endswith("no policy that is added would make it a yes")
    assert texts(explained(name="gone"))[0] == "there is no Service default/gone"
    assert texts(explained(number=81))[0] == "Service default/shop has no port 81; it has 80, 3306"


def test_permissive_mode_is_told() -> None:
    """With the MeshConfig that says it."""
    found = explained(MeshConfig(permissive=True))
    assert found.steps[1].text.startswith("the mesh is permissive")
    assert [str(key) for key, _ in found.steps[1].objects] == ["MeshConfig osm-system/osm-mesh-config"]


def test_the_remedy_is_narrow_and_keeps_names_apart() -> None:
    """One path, one method, nothing taken for an expression, and a name that nobody has."""
    taken = target("buyer-to-shop", "thief", "shop", tcp("db"))
    request = Request(identity("buyer"), service_key("shop"), Port(80), "PURGE", "/a.b?c=d")
    group, made = remedy(view(*MESH, taken), request)
    assert group["spec"] == {"matches": [{"name": "this", "pathRegex": r"/a\.b", "methods": ["*"]}]}
    assert made["metadata"] == {"name": "buyer-to-shop-2", "namespace": "default"}
