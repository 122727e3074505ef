"""Tests that oracle and real Envoys agree, on kept regressions and random policies; errors are found.

`make differential` runs more, with fresh seeds.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from types import ModuleType

import pytest
import pytest_asyncio

import catalog.oracle.gateway
import catalog.oracle.mutual_tls
import catalog.oracle.request.request
from catalog.oracle import transit as passing
from catalog.oracle.decide import Answer, Request
from catalog.oracle.request.expressions import fits_in_full
from catalog.oracle.request.headers import SINGLE, TE, UNSEEN
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Namespace, Port, ServiceAccountName, ServiceName
from meshwright.mesh.service import ServiceKey
from tests.differential import first_match
from tests.differential.cases import Case, case
from tests.differential.comparison import compare, run
from tests.differential.counts import Counts
from tests.differential.running_mesh import DifferentialMesh
from tests.differential.topology import Document
from tests.differential.wire import over_http2
from tests.meshes.resources import resources
from tests.tools import libyaml

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.asyncio(loop_scope="module"),
]

REGRESSIONS = sorted((Path(__file__).parent / "regressions").glob("*.yaml"))
OVERLAPPING = Path(__file__).parent / "regressions" / "overlapping_targets.yaml"
SHARE = 400
MOST = 200


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def mesh(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[DifferentialMesh]:
    """Five Envoys for all tests of the module."""
    async with AsyncExitStack() as ends:
        yield await DifferentialMesh.start(tmp_path_factory.mktemp("differential"), ends)


def regression(path: Path) -> Case:
    """Read a regression: the first document has the requests, the others are the policy."""
    first, *policy = libyaml.load_all(path.read_text())
    return Case(tuple(policy), tuple(map(_asked, first["requests"])))


def _asked(given: Document) -> Request:
    request = _request(given)
    return over_http2(request) if given.get("http2") else request


def _request(asked: Document) -> Request:
    who_namespace, who = asked["from"].split("/")
    namespace, name = asked["to"].split("/")
    return Request(
        ServiceIdentity(Namespace(who_namespace), ServiceAccountName(who)),
        ServiceKey(Namespace(namespace), ServiceName(name)),
        Port(asked["port"]),
        asked.get("method", "GET"),
        asked.get("path", "/"),
        tuple((name, value) for name, value in asked.get("headers", [["Host", "x"]])),
        server_name=asked.get("server_name", ""),
    )


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: path.stem)
async def test_regressions_show_no_disagreement_of_oracle_and_envoys(
    mesh: DifferentialMesh, path: Path
) -> None:
    """Every disagreement found in the past stays resolved."""
    counts = Counts()
    await compare(mesh, regression(path), counts)
    assert list(map(str, counts.disagreements)) == []


async def test_envoys_agree_with_the_oracle_on_random_policies(mesh: DifferentialMesh) -> None:
    """The policies are from a fixed seed. Every kind of answer is frequent enough."""
    counts = await run(mesh, seed=1, policies=30, requests=12)
    assert list(map(str, counts.disagreements)) == []
    assert counts.too_few == {}, counts.shares
    assert counts.by_kind.keys() == {"HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute"}


@pytest.fixture
def mistaken(mesh: DifferentialMesh) -> Iterator[DifferentialMesh]:
    """The mesh with a translation in which the first matching route decides alone."""
    mesh.translate = first_match.translate
    yield mesh
    mesh.translate = resources


async def test_first_match_translation_disagrees_at_overlapping_targets(mistaken: DifferentialMesh) -> None:
    """This wrong translation and the oracle disagree at two requests of the kept policy, and at no others."""
    counts = Counts()
    await compare(mistaken, regression(OVERLAPPING), counts)
    requests = [disagreement.asked for disagreement in counts.disagreements if not disagreement.directly]
    assert [(str(request.client), request.method, request.path) for request in requests] == [
        ("bank/bob", "GET", "/books"),
        ("shop/alice", "POST", "/books"),
    ]


async def test_first_match_translation_is_detected_by_random_policies(mistaken: DifferentialMesh) -> None:
    """About one in nine policies detects it, so 200 policies of a fixed seed suffice."""
    counts = Counts()
    while not counts.disagreements and counts.policies < MOST:
        await compare(mistaken, case(Random(f"1/{counts.policies}"), 12), counts)  # noqa: S311 - test data
    assert counts.disagreements, f"none of {counts.policies} policies divides them"


@pytest.mark.parametrize(
    ("module", "name", "mistaken", "kept"),
    [
        (passing, "passed", lambda request, *_: request, "dressed_paths"),
        (
            catalog.oracle.request.request,
            "fits_in_full",
            lambda regex, value: fits_in_full(regex.replace("{,", "{0,"), value),
            "repetitions",
        ),
        (catalog.oracle.gateway, "_path_rank", lambda _: (0, 0), "gateway_routes"),
        (catalog.oracle.gateway, "new_path", lambda path, *_: path, "gateway_routes"),
        (catalog.oracle.gateway, "name_rank", lambda names, name: (0, 0), "tls_routes"),
    ],
    ids=[
        "paths as they are sent",
        "another reading of expressions",
        "routes by age alone",
        "paths before they are rewritten",
        "server names without effect",
    ],
)
async def test_wrong_oracle_is_detected(
    mesh: DifferentialMesh,
    monkeypatch: pytest.MonkeyPatch,
    module: ModuleType,
    name: str,
    mistaken: object,
    kept: str,
) -> None:
    """The errors are paths that are not normalized, another meaning of `{,3}`, and three about routes."""
    monkeypatch.setattr(module, name, mistaken)
    counts = Counts()
    await compare(mesh, regression(OVERLAPPING.with_name(f"{kept}.yaml")), counts)
    assert counts.disagreements


async def test_oracle_that_admits_everyone_in_plain_text_is_detected(
    mesh: DifferentialMesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every caller counts as a source; policies of a fixed seed are tried until one detects it."""
    monkeypatch.setattr(catalog.oracle.mutual_tls, "_is_source", lambda *_: True)
    counts = Counts()
    for number in range(MOST):
        random = Random(f"plain/{number}")  # noqa: S311 - test data
        await compare(mesh, case(random, 12), counts)
        if counts.disagreements:
            break
    assert {disagreement.directly.endswith("in plain text") for disagreement in counts.disagreements} == {
        True
    }


ORDINARY = frozenset({"x-tag", "accept-language", "cookie", "date", "forwarded", "range", "traceparent"})
UNSENT = frozenset({"transfer-encoding"})
"""Headers that would change the message itself."""


async def test_repeated_headers_are_matched_like_in_the_oracle(mesh: DifferentialMesh) -> None:
    """Each special header, and some ordinary ones, is sent once, and twice in either order."""
    names = sorted((SINGLE | UNSEEN | ORDINARY | {TE, "upgrade"}) - UNSENT)
    matches = [{"name": item, "pathRegex": f"/{item}", "headers": {item: "good"}} for item in names]
    group = {
        "apiVersion": "specs.smi-spec.io/v1alpha4",
        "kind": "HTTPRouteGroup",
        "metadata": {"name": "headers", "namespace": "shop"},
        "spec": {"matches": matches},
    }
    target = {
        "apiVersion": "access.smi-spec.io/v1alpha3",
        "kind": "TrafficTarget",
        "metadata": {"name": "target", "namespace": "shop"},
        "spec": {
            "destination": {"kind": "ServiceAccount", "name": "v1", "namespace": "shop"},
            "sources": [{"kind": "ServiceAccount", "name": "alice", "namespace": "shop"}],
            "rules": [{"kind": "HTTPRouteGroup", "name": "headers"}],
        },
    }
    asked = [
        {
            "from": "shop/alice",
            "to": "shop/web-v1",
            "port": 80,
            "path": f"/{name}",
            "headers": [["Host", "x"], *([name, value] for value in values)],
        }
        for name in names
        for values in (["good"], ["good", "bad"], ["bad", "good"], ["good,bad"])
    ]
    counts = Counts()
    await compare(mesh, Case((group, target), tuple(map(_asked, asked))), counts)
    assert list(map(str, counts.disagreements)) == []
    assert counts.answers[Answer.ALLOWED] > 30
    assert counts.answers[Answer.REFUSED] > 90


async def test_traffic_is_divided_by_the_weights_of_a_split(mesh: DifferentialMesh) -> None:
    """A backend with weight 1 of 4 gets a quarter of all requests and connections."""
    backends = [{"service": "web-v1", "weight": 1}, {"service": "web-v2", "weight": 3}]
    split = {
        "apiVersion": "split.smi-spec.io/v1alpha2",
        "kind": "TrafficSplit",
        "metadata": {"name": "split", "namespace": "shop"},
        "spec": {"service": "root.shop", "backends": backends},
    }
    permissive = {
        "apiVersion": "config.openservicemesh.io/v1alpha2",
        "kind": "MeshConfig",
        "metadata": {"name": "osm-mesh-config", "namespace": "osm-system"},
        "spec": {"traffic": {"enablePermissiveTrafficPolicyMode": True}},
    }
    await mesh.apply((split, permissive))
    for port in (80, 3306):
        asked = _asked({"from": "bank/bob", "to": "shop/root", "port": port})
        seen = [(await mesh.send(asked)).by for _ in range(SHARE)]
        # Nearly six standard deviations (sqrt(400 * 1/4 * 3/4) is 8.7): chance fails one in 20 million.
        assert abs(seen.count("v1") - SHARE // 4) < 50
        assert seen.count("v1") + seen.count("v2") == SHARE


async def test_envoys_rejected_no_update_and_logged_no_warning(mesh: DifferentialMesh) -> None:
    """This holds after all policy changes of the tests above."""
    assert await mesh.complaints() == ""
