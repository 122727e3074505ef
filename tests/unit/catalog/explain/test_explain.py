"""Tests of explanations: they agree with the oracle, and their missing manifests admit the call."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import timedelta
from random import Random

import pytest

from catalog.explain import Explanation, explain
from catalog.explain.remedy import remedy
from catalog.oracle.decide import (
    Answer,
    LocalReply,
    Place,
    Request,
    SplitVerdict,
    Verdict,
    arriving,
    at_server,
    backends,
    decide,
    places,
    split_for,
)
from catalog.store.edits import Edits
from catalog.store.settings import Admission, EndpointAdmission
from catalog.store.view import MeshSettings, View
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.kinds import TRAFFIC_TARGET
from meshwright.mesh.names import Port, ServiceAccountName
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.origins import InFile
from meshwright.mesh.policies.authorization import Authorizer, ExternalAuthorization
from meshwright.mesh.policies.smi import Rule, TrafficSplit
from meshwright.mesh.service import Protocol
from meshwright.mesh.workload import WorkloadPort
from meshwright.providers.directory.manifests import Manifests
from tests.differential.cases import Case, case
from tests.differential.topology import Document, documents
from tests.meshes import values as a
from tests.unit.conftest import MANY_SECONDS

pytestmark = pytest.mark.timeout(MANY_SECONDS)  # some tests decide many random requests


def text(*manifests: Document) -> str:
    """Return manifests as the text of a JSON file, which takes a fifth of the time of YAML."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})


MISSING = "c.json"
TOPOLOGY = Manifests().apply("a.json", text(*documents()))


def read(*policy: Document) -> Manifests:
    """Add a policy to the topology."""
    return TOPOLOGY.apply("b.json", text(*policy))


def adding(state: Manifests, missing: Iterable[Document]) -> Manifests:
    """Add missing manifests to a policy, without reading the policy again."""
    return state.apply(MISSING, text(*missing))


def seen(state: Manifests) -> View:
    """Return the mesh that manifests describe."""
    return View.build(state.objects(), MeshSettings())


def anybody(mesh: View, request: Request) -> bool:
    """Return whether any place serves the called port."""
    return any(True for _ in behind(mesh, request))


def behind(mesh: View, request: Request) -> Iterator[tuple[Place, bool]]:
    """Yield the places that may serve a request."""
    called = mesh.services[request.service].port(request.port)
    assert called is not None
    for key, service_port, weight in backends(mesh, request, called, split_for(mesh, request, called)):
        if weight > 0:
            yield from places(mesh, key, service_port)


def passing(mesh: View, made: Case) -> Iterator[Request]:
    """Yield the requests of a case that no sidecar answers by itself."""
    for request in made.requests:
        arrived = arriving(mesh, request)
        if not isinstance(arrived, LocalReply) and not any(
            isinstance(at_server(mesh, arrived, place), LocalReply) for place in behind(mesh, arrived)
        ):
            yield request


def test_missing_manifests_admit_the_call() -> None:
    """For random policies, the missing manifests have no problems and make the answer `allowed`."""
    mended = 0
    for seed in range(15):
        made = case(Random(seed), 8, routed=0.0)  # noqa: S311 - test data
        before = read(*made.documents)
        mesh = seen(before)
        for request in passing(mesh, made):
            missing = remedy(mesh, request)
            answer = decide(mesh, request).answer
            if not missing:
                assert answer is Answer.ALLOWED or not anybody(mesh, request)
                continue
            assert answer is not Answer.ALLOWED
            state = adding(before, missing)
            assert [problem for problem in state.problems() if problem.origin.order[0] == MISSING] == []
            assert decide(seen(state), request).answer is Answer.ALLOWED, (seed, request)
            mended += 1
    assert mended > 25


def admitting_some(mesh: View, dice: Random) -> View:
    """Admit about half of the mesh's proxies, and no others."""
    names = sorted(
        workload.proxy_name for workload in mesh.workloads.values() if workload.proxy_name is not None
    )
    mesh.apply(Edits(settings=MeshSettings(endpoint_admission=EndpointAdmission.READY)))
    mesh.apply(Edits(admissions={name: Admission.ADMITTED for name in names if dice.random() < 0.5}))
    return mesh


def test_missing_policy_is_distinguished_from_missing_admission() -> None:
    """With some proxies admitted, `missing` has the missing policy and `besides` the missing admissions."""
    seen_kinds: Counter[tuple[bool, bool]] = Counter()
    for seed in range(8):
        dice = Random(seed)  # noqa: S311 - test data
        made = case(dice, 8, routed=0.0)  # a share of a route may have nobody to admit
        before = read(*made.documents)
        admitting_all, mesh = seen(before), admitting_some(seen(before), dice)
        ready = Edits(admissions=dict(mesh.admissions))
        for request in passing(mesh, made):
            explanation = explain(mesh, request)
            if explanation.decision.allowed or not anybody(mesh, request):
                assert (explanation.missing, explanation.besides) == ((), ())
                continue
            assert explanation.missing or explanation.besides
            added = seen(adding(before, explanation.missing))
            assert decide(added, request).allowed  # this mesh admits every endpoint
            added.apply(Edits(settings=mesh.settings))
            added.apply(ready)
            assert decide(added, request).allowed is not bool(explanation.besides)
            policy_lacks = not decide(admitting_all, request).allowed
            assert bool(explanation.missing) is policy_lacks, (seed, request)
            seen_kinds[bool(explanation.missing), bool(explanation.besides)] += 1
    assert min(seen_kinds[item] for item in ((True, True), (True, False), (False, True))) > 2


MESH = (
    a.service("shop", a.port(80, name="web"), a.port(3306, 3306, a.TCP, name="db")),
    a.service("v2", a.port(80)),
    a.workload("shop", "10.0.0.1"),
    a.workload("v2", "10.0.0.2"),
    a.workload("buyer", "10.0.0.8"),
    a.route_group("books", a.match("books", "/books.*", "GET", headers=(("x-tag", "a"),))),
    a.tcp_route("db", 3306),
)


def explained(*things: object, path: str = "/", number: int = 80, name: str = "shop") -> Explanation:
    """Explain the buyer's GET."""
    request = Request(a.identity("buyer"), a.service_key(name), Port(number), "GET", path)
    return explain(a.view(*MESH, *things), request)


def texts(explanation: Explanation) -> list[str]:
    """Return the sentences of an explanation, indented as they are shown."""
    return ["  " * step.depth + step.text for step in explanation.steps]


def test_refusal_is_explained_step_by_step() -> None:
    """The steps are port, server, each target and match with its reason, and the answer."""
    lacks = "the whole path must match /books.* and header x-tag must match a"
    explanation = explained(
        a.target("a", "buyer", "shop", a.http("books")),
        a.target("b", "thief", "shop", a.http("books")),
        a.target("c", "buyer", "shop", a.tcp("db")),
        path="/other",
    )
    assert texts(explanation) == [
        "Service default/shop has port 80, which speaks http, as its appProtocol declares.",
        "Service default/shop is served by ServiceAccount default/shop at port 8080.",
        "  TrafficTarget default/a admits only other requests there.",
        "    Match books of HTTPRouteGroup default/books does not fit the request: " + lacks + ".",
        "  TrafficTarget default/b names other sources than default/buyer: default/thief.",
        "  TrafficTarget default/c admits other ports than 8080.",
        "    TCPRoute default/db is for ports 3306.",
        "The request is refused: the server's sidecar answers 403.",
    ]
    key = ObjectKey(TRAFFIC_TARGET, explanation.request.service.namespace, "a")
    assert explanation.steps[2].objects == ((key, InFile("test", 1, 8)),)


def test_split_and_shares_are_explained() -> None:
    """The steps name the split that decides, the split without effect, and backends without a share."""
    explanation = explained(
        a.split("s", "shop", ("shop", 3), ("v2", 1), ("gone", 1)),
        a.split("t", "shop", ("v2", 1)),
        a.target("t", "buyer", "shop", a.tcp("db")),
        number=3306,
    )
    assert explanation.decision.answer is Answer.ALLOWED
    assert texts(explanation)[1:] == [
        (
            "TrafficSplit default/s chooses the backend, because it applies to all requests: shop 3, "
            "v2 1, gone 1."
        ),
        (
            "TrafficSplit default/t does not count, because TrafficSplit default/s takes precedence: "
            "it comes first by name."
        ),
        "Service default/v2 has no port 3306 and none named db, so it gets no share.",
        "Service default/gone does not exist, so it gets no share.",
        "Service default/shop (weight 3) is served by ServiceAccount default/shop at port 3306.",
        "  TrafficTarget default/t admits the request.",
        "    TCPRoute default/db is for ports 3306.",
        "The request is allowed.",
    ]
    assert explanation.missing == ()


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        (
            (a.http("gone"),),
            ["HTTPRouteGroup default/gone does not exist or is invalid, so the rule is not in force."],
        ),
        (
            (a.http("books", "x", "y"),),
            ["HTTPRouteGroup default/books has no match x, y; the rule admits nothing."],
        ),
        ((a.http("empty"),), ["HTTPRouteGroup default/empty has no matches; the rule admits nothing."]),
        (
            (a.tcp("gone"),),
            [("TCPRoute default/gone does not exist or is invalid, so the rule is not in force.")],
        ),
    ],
)
def test_rule_that_admits_nothing_is_explained(rules: tuple[Rule, ...], said: list[str]) -> None:
    """The steps name each rule that admits nothing, with the missing route or match.

    None of its matches is listed as fitting.
    """
    explanation = explained(a.route_group("empty"), a.target("t", "buyer", "shop", *rules), path="/books")
    assert texts(explanation)[2:-1] == [
        "  TrafficTarget default/t lacks a rule with an existing route.",
        *(f"    {item}" for item in said),
    ]


def test_rule_with_an_unknown_match_keeps_its_other_matches() -> None:
    """The steps name the unknown match, and the rule's other matches still admit the request."""
    made = a.target("t", "buyer", "shop", a.http("other", "o", "gone"))
    explanation = explained(a.route_group("other", a.match("o", "/books"), a.match("p")), made, path="/books")
    assert explanation.decision.answer is Answer.ALLOWED
    assert texts(explanation)[3:-1] == [
        "    HTTPRouteGroup default/other has no match gone; only the other matches of the rule count.",
        "    Match o of HTTPRouteGroup default/other fits the request.",
    ]


def test_target_for_another_port_or_namespace_is_explained() -> None:
    """A target without effect is listed with its only port (v1alpha2) or the namespace it must be in."""
    foreign = replace(a.target("f", "buyer", "shop", a.http("books")), key=a.policy_key("f", "bank"))
    explanation = explained(a.target("t", "buyer", "shop", a.http("books"), only=9090), foreign)
    assert texts(explanation)[2:4] == [
        (
            f"  TrafficTarget bank/f {Verdict.NOT_IN_FORCE.value}, so it is not in force; it must be "
            "in namespace default."
        ),
        "  TrafficTarget default/t is only for port 9090 of its destination.",
    ]


GOES_FIRST = "does not count, because TrafficSplit default/s takes precedence: it"


@pytest.mark.parametrize(
    ("first", "other", "said"),
    [
        (("all",), a.split("t", "shop", ("v2", 1)), f"{GOES_FIRST} has matches that the request fits"),
        ((), a.split("t", "shop", ("v2", 1)), f"{GOES_FIRST} has a creation time"),
        ((), a.split("t", "shop", ("v2", 1), created="2025"), f"{GOES_FIRST} is older"),
        (
            (),
            a.split("t", "shop", ("v2", 1), created="2024"),
            f"{GOES_FIRST} comes first by name",
        ),
        ((), a.split("t", "shop", ("v2", 0)), SplitVerdict.NO_WEIGHT.value),
        ((), a.split("t", "shop", ("gone", 1)), SplitVerdict.NO_WEIGHT.value),
        ((), a.split("t", "shop", ("v2", 2**32)), SplitVerdict.TOO_HEAVY.value),
        ((), a.split("t", "shop", ("v2", 1), matches=("gone",)), SplitVerdict.UNKNOWN_GROUP.value),
        ((), a.split("t", "shop", ("v2", 1), matches=("empty",)), SplitVerdict.UNKNOWN_GROUP.value),
        ((), a.split("t", "shop", ("v2", 1), matches=("books",)), SplitVerdict.OTHER_REQUESTS.value),
        (
            (),
            replace(a.split("t", "shop", ("v2", 1)), key=a.policy_key("t", "bank")),
            SplitVerdict.FOREIGN_APEX.value,
        ),
    ],
)
def test_split_without_effect_is_explained_with_the_reason(
    first: tuple[str, ...], other: TrafficSplit, said: str
) -> None:
    """A split does not decide if it is invalid, for other requests, or if another split takes precedence."""
    groups = (a.route_group("all", a.match("all")), a.route_group("empty"))
    decides = a.split("s", "shop", ("shop", 1), matches=first, created="2024")
    explanation = explained(*groups, decides, other)
    assert texts(explanation)[2] == f"TrafficSplit {other.key} {said}."


def test_split_with_matches_has_no_effect_at_a_tcp_port() -> None:
    """A split with matches has no effect at a TCP port, because sidecars see no requests there."""
    made = a.split("s", "shop", ("v2", 1), matches=("books",))
    assert texts(explained(made, number=3306))[1] == f"TrafficSplit default/s {SplitVerdict.HTTP_ONLY.value}."


def test_failure_beyond_policy_has_no_missing_manifests() -> None:
    """An unknown service, an unknown port and an empty service have no remedy, and the last step says so."""
    for made in (explained(name="gone"), explained(number=81), explained(a.service("empty"), name="empty")):
        assert (made.missing, made.besides) == ((), ())
        assert made.steps[-1].text.endswith(" An additional policy would not change this answer.")


def test_unknown_name_is_explained_with_similar_names() -> None:
    """The steps name similar Services, other namespaces, a target port, or a workload's account."""
    assert texts(explained(name="gone"))[0] == "Service default/gone does not exist."
    assert (
        texts(explained(name="shopp"))[0]
        == "Service default/shopp does not exist (similar names: default/shop)."
    )
    elsewhere = a.service("vault", namespace="bank")
    assert (
        texts(explained(elsewhere, name="vault"))[0]
        == "Service default/vault does not exist (similar names: bank/vault)."
    )
    assert texts(explained(number=81))[0] == "Service default/shop has no port 81. Its ports: 80, 3306."
    assert texts(explained(number=8080))[0] == (
        "Service default/shop has no port 8080. Its ports: 80, 3306; 8080 is the target port of its port 80."
    )
    nobody, day = (
        "No workload has the ServiceAccount default/",
        ". The next steps describe a workload that has this account.",
    )
    more = (a.workload("pod-1", "10.0.0.20", account="clerk"), a.workload("a", "10.0.0.21", namespace="bank"))
    for name, hint in (
        ("pod-1", ": the workload default/pod-1 has default/clerk"),
        ("a", " (similar names: bank/a)"),
        ("buyers", " (similar names: default/buyer)"),
        ("zzz", ""),
    ):
        asked = Request(a.identity(name), a.service_key("shop"), Port(80))
        assert texts(explain(a.view(*MESH, *more), asked))[1] == nobody + name + hint + day


@pytest.mark.parametrize(
    ("source", "declared", "said"),
    [
        ("appProtocol", None, "http, as its appProtocol declares"),
        ("name", None, "http, as its name declares"),
        ("port", None, "http, as its number suggests"),
        ("default", None, "http, by default, because a protocol is not declared (set appProtocol)"),
        ("default", a.TCP, "tcp, as its workloads declare"),
    ],
)
def test_protocol_of_a_port_is_explained_with_its_source(
    source: str, declared: Protocol | None, said: str
) -> None:
    """The first step names the protocol and its source: appProtocol, name, number, default or workload."""
    ports = (WorkloadPort(Port(8080), "", declared),)
    made = explained(
        a.service("web", a.port(80, source=source)), a.workload("web", "10.0.0.20", *ports), name="web"
    )
    assert texts(made)[0] == f"Service default/web has port 80, which speaks {said}."


def test_port_with_two_protocols_is_explained() -> None:
    """A step reports the other Service whose protocol takes precedence at the port, so that calls fail."""
    other = a.service("admin", a.port(81, protocol=a.TCP), app="shop")
    message = (
        "Workload default/shop serves its port 8080 as tcp, as default/admin declares (of several "
        "Services the oldest decides), so calls as http fail (MW2026)."
    )
    assert message in texts(explained(other))
    assert message not in texts(explained(other, name="v2"))


def test_explicit_client_without_the_upstream_is_explained() -> None:
    """Policy allows the call, but a step reports that the client's sidecar does not offer the Service."""
    open_up = (a.route_group("all", a.match("all")), a.target("t", "agent", "shop", a.http("all")))
    asked = Request(a.identity("agent"), a.service_key("shop"), Port(80))
    for upstreams, answer in (
        ((("v2", 80, "127.0.0.1", 1),), True),
        ((("shop", 80, "127.0.0.1", 1),), False),
    ):
        client = a.workload("agent", "10.0.0.9", interception=a.explicit(None, *upstreams))
        steps = texts(explain(a.view(*MESH, *open_up, client), asked))
        text = (
            "Workload default/agent has no upstream for default/shop:80, so its sidecar does "
            "not offer the Service."
        )
        assert (text in steps) is answer
        assert steps[-1] == "The request is allowed."


def test_permissive_mode_is_explained_with_its_mesh_config() -> None:
    """The second step reports permissive mode and refers to the MeshConfig."""
    explanation = explained(MeshConfig(permissive=True))
    assert explanation.steps[1].text.startswith("The mesh is permissive: every caller")
    assert [str(key) for key, _ in explanation.steps[1].objects] == ["MeshConfig osm-system/osm-mesh-config"]


def test_authorizer_is_mentioned_only_where_policy_admits() -> None:
    """The steps mention the authorizer if policy admits the call; refused requests are not sent to it."""
    asked = MeshConfig(
        permissive=True,
        authorization=Authorizer(HostPort("opa.opa", 9191), "asked", timedelta(seconds=1)),
    )
    text = (
        "The server's sidecar also asks the authorizer at opa.opa:9191, and the authorizer may "
        "refuse the request (403)."
    )
    steps = explained(asked).steps
    assert [str(key) for step in steps if step.text == text for key, _ in step.objects] == [
        "MeshConfig osm-system/osm-mesh-config"
    ]
    closed = replace(asked, permissive=False)
    assert text not in [step.text for step in explained(closed).steps]


def test_external_authorization_replaces_the_authorizer_of_the_mesh() -> None:
    """The steps name the ExternalAuthorization of the server, also a disabled one.

    An object for other workloads has no effect.
    """
    mesh, own = (Authorizer(HostPort(item, 9191), "asked", timedelta(seconds=1)) for item in ("mesh", "own"))
    key, config = a.policy_key("opa"), MeshConfig(permissive=True, authorization=mesh)

    def told(*accounts: str, authorizer: Authorizer | None = own) -> list[tuple[str, str]]:
        names = tuple(map(ServiceAccountName, accounts))
        steps = explained(config, ExternalAuthorization(key, authorizer, names)).steps
        return [(step.text, str(step.objects[0][0])) for step in steps if "authorizer" in step.text]

    told_of = "because of ExternalAuthorization default/opa"
    own_s = (
        (
            f"The server's sidecar also asks the authorizer at own:9191, {told_of}, and the authorizer "
            "may refuse the request (403)."
        ),
        "ExternalAuthorization default/opa",
    )
    nobody = (
        "ExternalAuthorization default/opa is disabled, so the sidecar does not ask the mesh's authorizer.",
        "ExternalAuthorization default/opa",
    )
    mesh_s = (
        (
            "The server's sidecar also asks the authorizer at mesh:9191, and the authorizer may refuse "
            "the request (403)."
        ),
        "MeshConfig osm-system/osm-mesh-config",
    )
    assert (told(), told("shop")) == ([own_s], [own_s])
    assert (told(authorizer=None), told("other")) == ([nobody], [mesh_s])


def test_remedy_is_narrow_and_takes_an_unused_name() -> None:
    """The remedy admits one escaped path, with every method in place of PURGE, under an unused name."""
    taken = a.target("buyer-to-shop", "thief", "shop", a.tcp("db"))
    request = Request(a.identity("buyer"), a.service_key("shop"), Port(80), "PURGE", "/a.b?c=d")
    group, made = remedy(a.view(*MESH, taken), request)
    assert group["spec"] == {"matches": [{"name": "this", "pathRegex": r"/a\.b", "methods": ["*"]}]}
    assert made["metadata"] == {"name": "buyer-to-shop-2", "namespace": "default"}
