"""Tests of request targets behind sidecars: real Envoys against `catalog.oracle.request.paths`.

Each target is sent raw, in HTTP/1.1 and in HTTP/2, through both sidecars and directly to the server's. The
target that reaches the application, or the status of a refusal, is the predicted one. The server's rules
match exactly the predicted path.
"""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from random import Random

import pytest
import pytest_asyncio

from catalog.oracle.decide import LocalReply, Place, Request, arriving, at_server
from catalog.oracle.request.expressions import literal
from catalog.oracle.request.request import path_of
from catalog.store.view import View
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Namespace, Port, ServiceAccountName, ServiceName
from meshwright.mesh.service import ServiceKey
from tests.differential.running_mesh import DifferentialMesh
from tests.differential.targets import target
from tests.differential.topology import HTTP_A, WORKLOADS, Document
from tests.differential.wire import Answered, over_http2

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.asyncio(loop_scope="module"),
]

COUNT = int(os.environ.get("MESHWRIGHT_TARGETS", "120"))
AT_ONCE = 16
ALICE = ServiceIdentity(Namespace("shop"), ServiceAccountName("alice"))
V1 = next(workload for workload in WORKLOADS if workload.account == "v1")
VAULT = next(workload for workload in WORKLOADS if workload.account == "vault")
CALLED = {"shop/web-v1": V1, "bank/vault": VAULT}
"""A service that refuses escaped slashes, one that keeps them, and who answers for each."""

WRITTEN = (
    *(
        b"/",
        b"/a/../b",
        b"/a/%2e%2E/b",
        b"/a//../b",
        b"/./a",
        b"/a/.",
        b"/..",
        b"//..//b",
        b"//a",
        b"/a\\..\\b",
    ),
    *(
        b"/a%2fb",
        b"/a%5Cb",
        b"/a?x=%2f/../#",
        b"/a?x=%2f/..",
        b"/a#b",
        b"/%23",
        b"/a/..%2fb",
        b"/a%2f..",
        b"/a%2f..",
    ),
    *(
        b"/a/..;/b",
        b"/a/.;x/b",
        b"/a/%2e%2e;/b",
        b"/a\\..;/b",
        b"/a/..%3b/b",
        b"/.;a\\..;b/c",
        b"/a%5c.;x%2fb",
    ),
    *(
        b"/%61%41%7e%2d%5f%2b",
        b"/%zz%",
        b"/%2%65%2%65/b",
        b"/%%32e",
        b"/%252e%252e/b",
        b"/%2%35",
        b"/%00",
        b"/\x00",
    ),
    *(
        b"/a?b=\xff\xc3\xa9",
        b"/caf\xc3\xa9",
        b"/caf%c3%A9",
        b"/\xff",
        b"/a b",
        b"/\x01",
        b'/{|}^`<>"',
        b"/[a]'()",
        b"",
        b"*",
        b"a",
        b"?",
    ),
    *(
        b"http://y/a/../b",
        b"HTTPS://y:80",
        b"http://u:p@y/a",
        b"http://y?q",
        b"http://_/",
        b"ftp://y/",
        b"http:///a",
    ),
    *(
        b"http://y/a#b",
        b"http://y\\a",
        b"http://[::1]:8/a",
        b"http://y:99999/",
        b"/http://y/a",
        b"/a?http://y/../b",
    ),
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def mesh(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[DifferentialMesh]:
    """Five Envoys for all tests of the module."""
    async with AsyncExitStack() as ends:
        yield await DifferentialMesh.start(tmp_path_factory.mktemp("paths"), ends)


METHODS = ("GET", "PURGE", "PROPFIND", "MSEARCH", "BAN", "M-SEARCH", "get")


def asked(written: bytes, number: int, name: str, *, http2: bool, method: str = "GET") -> Request:
    """Return a numbered request of a service for a target."""
    namespace, service = name.split("/")
    key = ServiceKey(Namespace(namespace), ServiceName(service))
    headers = (("Host", "x"), ("x-number", str(number)))
    made = Request(ALICE, key, Port(80), method, written.decode("utf-8", "surrogateescape"), headers)
    return over_http2(made) if http2 else made


def requests() -> list[Request]:
    """Return the requests: targets and methods of the tables and random targets, each in both protocols."""
    random = Random(os.environ.get("MESHWRIGHT_SEED", "1"))  # noqa: S311 - test data
    targets = [*WRITTEN, *(target(random) for _ in range(COUNT))]
    pairs = [*((item, "GET") for item in targets), *((b"/", item) for item in METHODS)]
    return [
        asked(written, number, name, http2=http2, method=method)
        for number, (written, method) in enumerate(pairs)
        for name in CALLED
        for http2 in (False, True)
    ]


def judged(view: View, request: Request, *, directly: bool) -> Request | LocalReply:
    """Return the request at the server's sidecar, directly or through the client's sidecar."""
    place = Place(CALLED[str(request.service)].identity, Port(HTTP_A)), True
    at_client = request if directly else arriving(view, request)
    return at_client if isinstance(at_client, LocalReply) else at_server(view, at_client, place)


def expected(view: View, request: Request, *, directly: bool) -> Answered:
    """Return the expected result: the target at the application, or the status of a refusal."""
    result = judged(view, request, directly=directly)
    if isinstance(result, LocalReply):
        return Answered(result.status)
    return Answered(200, CALLED[str(request.service)].account, result.path.encode("utf-8", "surrogateescape"))


async def send(mesh: DifferentialMesh, request: Request, *, directly: bool) -> Answered:
    """Send a request through both sidecars, or directly to the server's."""
    if directly:
        return await mesh.send_directly(request, CALLED[str(request.service)], HTTP_A)
    return await mesh.send(request)


async def differences(
    mesh: DifferentialMesh, view: View, made: list[Request]
) -> tuple[list[str], Counter[str]]:
    """Send all requests both ways; return the differences and the number of each result."""
    result: list[str] = []
    counted: Counter[str] = Counter()
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(request: Request, *, directly: bool) -> None:
        async with turns:
            seen = await send(mesh, request, directly=directly)
        wanted = expected(view, request, directly=directly)
        as_written = request.path.encode("utf-8", "surrogateescape")
        counted["changed" if seen.status == 200 and seen.saw != as_written else f"{seen.status}"] += 1
        if seen != wanted:
            result.append(f"{request} {directly=}: {wanted} was expected, {seen} seen")

    await asyncio.gather(*(one(item, directly=way) for item in made for way in (False, True)))
    return result, counted


def policy(matches: list[Document]) -> tuple[Document, ...]:
    """Return a policy that permits these matches of both servers to alice."""
    result: list[Document] = []
    for runs in (V1, VAULT):
        metadata = {"name": "paths", "namespace": runs.namespace}
        rules = [{"kind": "HTTPRouteGroup", "name": "paths"}]
        source = {"kind": "ServiceAccount", "name": "alice", "namespace": "shop"}
        to = {"kind": "ServiceAccount", "name": runs.account, "namespace": runs.namespace}
        spec = {"destination": to, "sources": [source], "rules": rules}
        result += [
            {
                "apiVersion": "specs.smi-spec.io/v1alpha4",
                "kind": "HTTPRouteGroup",
                "metadata": metadata,
                "spec": {"matches": matches},
            },
            {
                "apiVersion": "access.smi-spec.io/v1alpha3",
                "kind": "TrafficTarget",
                "metadata": metadata,
                "spec": spec,
            },
        ]
    return tuple(result)


async def test_request_targets_arrive_as_the_oracle_predicts(mesh: DifferentialMesh) -> None:
    """The rules admit everything. Enough targets are changed, refused, or not answered at all."""
    view = await mesh.apply(policy([{"name": "all"}]))
    made = requests()
    result, counted = await differences(mesh, view, made)
    assert result == []
    total = counted.total()
    assert total == 2 * len(made) >= 8 * COUNT
    assert counted["changed"] > 0.3 * total, counted
    assert counted["200"] > 0.05 * total, counted
    assert counted["400"] > 0.1 * total, counted
    assert counted["0"] > 0.01 * total, counted


async def test_rules_match_the_path_that_the_oracle_predicts(mesh: DifferentialMesh) -> None:
    """Each request has its own match, for exactly the predicted path.

    With another rule, every request is denied.
    """
    everything = requests()
    paths: dict[str, set[str]] = {}
    for request in everything:
        for directly in (False, True):
            judgement = judged(mesh.view, request, directly=directly)
            if not isinstance(judgement, LocalReply):
                paths.setdefault(dict(request.headers)["x-number"], set()).add(path_of(judgement))
    view = await mesh.apply(
        policy(
            [
                {"name": f"{number}.{index}", "pathRegex": literal(path), "headers": {"x-number": number}}
                for number, those in paths.items()
                for index, path in enumerate(sorted(those))
            ]
        )
    )
    made = [item for item in everything if dict(item.headers)["x-number"] in paths and _is_one(paths, item)]
    assert len(made) > COUNT
    result, _ = await differences(mesh, view, [item for item in made if _passes(view, item)])
    assert result == []
    spoilt = policy([{"name": "m", "pathRegex": "/nothing-of-this"}])
    view = await mesh.apply(spoilt)
    result, counted = await differences(mesh, view, [item for item in made[:40] if _passes(view, item)])
    assert (len(result), set(counted)) == (counted.total(), {"403"})


def _is_one(paths: dict[str, set[str]], request: Request) -> bool:
    """Return whether all ways to send a request's target lead to one path."""
    return len(paths[dict(request.headers)["x-number"]]) == 1


def _passes(view: View, request: Request) -> bool:
    return not any(
        isinstance(judged(view, request, directly=directly), LocalReply) for directly in (False, True)
    )
