"""Splits of SMI and the routes that `meshwright migrate smi` makes of them, tried with the same requests.

Real Envoys answer random requests by the splits, then by the routes. Each request has one backend, or shares.
"""

import asyncio
import math
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final, NamedTuple

import pytest
import yaml

from meshwright.cli.migrating.gateway_api.replaced_splits import replaced_splits
from meshwright.providers.directory.manifests import Manifests
from tests.gateway import echo
from tests.gateway.case_files import Call, Document, default_service
from tests.gateway.client import Client
from tests.gateway.echo import Journal
from tests.gateway.running_cases import server_tls, view_of
from tests.gateway.topology import WORKLOADS, Topology
from tests.golden.running_mesh import LiveMesh

REQUESTS: Final = 5000
SERVICES: Final = 12
_AT_ONCE: Final = 8
_FEWEST: Final = 4
"""Services that must have an equivalent route, so the comparison is not about nothing."""
_BACKENDS: Final = ("v1", "v2", "v3")
_METHODS: Final = ("GET", "POST", "PUT")
_PATHS: Final = ("/", "/a", "/a/b", "/b", "/items/1")
_REGEXES: Final = (None, "/a", "/b", "/items/.*", ".*")
_TRACKS: Final = ("", "beta", "stable")


class Request(NamedTuple):
    """A request to a Service of the shop; `track` is the value of a header, empty for none."""

    service: str
    method: str
    path: str
    track: str


@pytest.mark.envoy
@pytest.mark.asyncio
async def test_routes_answer_as_the_splits_that_they_replace(tmp_path: Path) -> None:
    """Every request gets the backends of the splits, and each backend its share, before and after."""
    chance = random.Random(20261130)  # noqa: S311 - the same requests in every run
    smi = {f"split-{number}": tuple(_splits(chance, f"split-{number}")) for number in range(SERVICES)}
    requests = [_request(chance, service) for service in chance.choices(sorted(smi), k=REQUESTS)]
    topology = Topology.of(map(_call, requests))
    shared = [*topology.documents(), *(default_service(name, ["web"], "v1") for name in smi)]
    before = _read(shared, [document for splits in smi.values() for document in splits])
    routes = replaced_splits(view_of(before)).manifests
    moved = {route["metadata"]["name"] for route in routes}
    assert len(moved) >= _FEWEST
    kept = [document for name, splits in smi.items() if name not in moved for document in splits]
    after = _read(shared, [*kept, *routes])
    async with AsyncExitStack() as ends:
        live = await _mesh(tmp_path, topology, ends)
        for documents in (before, after):
            live.publish(view_of(documents))
            await live.in_force()
            answers = await _answers(requests, topology, ends)
            assert _differences(smi, answers) == []
        assert await live.complaints() == ""


def test_comparison_finds_another_backend_and_another_share() -> None:
    """A single wrong answer is found, and a share of a third where a quarter is right."""
    split = _document("split.smi-spec.io", "TrafficSplit", "a", {"service": "a", "backends": _weights(1, 3)})
    request = Request("a", "GET", "/", "")
    right, wrong = Counter(v1=262, v2=738), Counter(v1=333, v2=667)
    assert _differences({"a": (split,)}, {request: right}) == []
    assert len(_differences({"a": (split,)}, {request: wrong})) == 2
    assert len(_differences({"a": (split,)}, {request: right + Counter(v3=1)})) == 1


def _splits(chance: random.Random, service: str) -> Iterator[Document]:
    """Yield splits of one Service with their matches; of equally old ones the first by name decides."""
    for number in range(chance.randint(1, 3)):
        name = f"{service}-{number}"
        matches = [_match(chance, position) for position in range(chance.randint(0, 2))]
        if matches:
            yield _document("specs.smi-spec.io", "HTTPRouteGroup", name, {"matches": matches})
        backends = [
            {"service": backend, "weight": chance.choice((1, 3))}
            for backend in chance.sample(_BACKENDS, chance.choice((1, 1, 2)))
        ]
        spec: Document = {"service": service, "backends": backends}
        if matches:
            spec["matches"] = [{"kind": "HTTPRouteGroup", "name": name}]
        yield _document("split.smi-spec.io", "TrafficSplit", name, spec)


def _match(chance: random.Random, position: int) -> Document:
    result: Document = {"name": f"match-{position}"}
    if regex := chance.choice(_REGEXES):
        result["pathRegex"] = regex
    if chance.random() < 0.5:
        result["methods"] = chance.sample(_METHODS, chance.randint(1, 2))
    if chance.random() < 0.5 or len(result) == 1:
        result["headers"] = [{"x-track": chance.choice(("beta", "stable", ".*"))}]
    return result


def _document(group: str, kind: str, name: str, spec: Document) -> Document:
    return {
        "apiVersion": f"{group}/v1alpha4",
        "kind": kind,
        "metadata": {"name": name, "namespace": "shop"},
        "spec": spec,
    }


def _weights(*weights: int) -> list[Document]:
    return [
        {"service": name, "weight": weight}
        for name, weight in zip(_BACKENDS, weights, strict=False)
        if weight
    ]


def _request(chance: random.Random, service: str) -> Request:
    return Request(service, chance.choice(_METHODS), chance.choice(_PATHS), chance.choice(_TRACKS))


def _call(request: Request) -> Call:
    headers = (("x-track", request.track),) if request.track else ()
    return Call("client", f"{request.service}.shop", 80, request.method, request.path, headers=headers)


def _read(shared: list[Document], documents: list[Document]) -> Manifests:
    texts = {"mesh.yaml": yaml.safe_dump_all(shared), "policy.yaml": yaml.safe_dump_all(documents)}
    result = Manifests().apply_all(texts)
    assert not result.problems(), result.problems()
    return result


async def _mesh(state: Path, topology: Topology, ends: AsyncExitStack) -> LiveMesh:
    journal, tls = Journal(), server_tls(state)
    for name in _BACKENDS:
        await echo.start(name, WORKLOADS[name].application, journal, tls, ends)
    live = await LiveMesh.start(state, yaml.safe_dump_all(topology.documents()), ends)
    await asyncio.gather(*(live.envoy(name) for name in ("client", *_BACKENDS)))
    return live


async def _answers(
    requests: list[Request], topology: Topology, ends: AsyncExitStack
) -> dict[Request, Counter[str]]:
    """Send all requests, and return the answers of equal ones together."""
    result: dict[Request, Counter[str]] = defaultdict(Counter)
    client, waiting = Client(ends), iter(enumerate(requests))

    async def send() -> None:
        for number, request in waiting:
            call = _call(request)
            outcome = await client.outcome(call, topology.place(call), f"migrated/{number}")
            result[request].update(outcome.words)

    async with asyncio.TaskGroup() as group:
        for _ in range(_AT_ONCE):
            group.create_task(send(), name="requests")
    return result


def _expected(splits: tuple[Document, ...], request: Request) -> Mapping[str, int]:
    """Return the backends of a request with their weights, as SMI says: the first split that fits decides.

    Splits with matches come before those without, and the first one by name of each.
    """
    groups = {item["metadata"]["name"]: item["spec"] for item in splits if item["kind"] == "HTTPRouteGroup"}
    ordered = sorted(
        (item for item in splits if item["kind"] == "TrafficSplit"),
        key=lambda item: ("matches" not in item["spec"], item["metadata"]["name"]),
    )
    for split in ordered:
        spec = split["spec"]
        matches = [match for named in spec.get("matches", ()) for match in groups[named["name"]]["matches"]]
        if "matches" not in spec or any(_fits(match, request) for match in matches):
            return {backend["service"]: backend["weight"] for backend in spec["backends"]}
    return {"v1": 1}


def _fits(match: Document, request: Request) -> bool:
    wanted = [(name, regex) for headers in match.get("headers", ()) for name, regex in headers.items()]
    return (
        bool(re.fullmatch(match.get("pathRegex", ".*"), request.path))
        and request.method in match.get("methods", _METHODS)
        and all(request.track and re.fullmatch(regex, request.track) for _, regex in wanted)
    )


def _differences(
    smi: Mapping[str, tuple[Document, ...]], answers: Mapping[Request, Counter[str]]
) -> list[str]:
    """Return the differences between answers and splits, in words.

    Shares are compared over all requests of a Service with the same weights, and may differ by five standard
    deviations.
    """
    result = []
    shared: dict[tuple[str, tuple[tuple[str, int], ...]], Counter[str]] = defaultdict(Counter)
    for request, words in answers.items():
        expected = _expected(smi[request.service], request)
        shared[request.service, tuple(sorted(expected.items()))].update(words)
        if wrong := sorted(set(words) - set(expected)):
            result.append(f"{request} was answered by {', '.join(wrong)}, and not by {', '.join(expected)}")
    for (service, weights), words in shared.items():
        total, number = sum(weight for _, weight in weights), words.total()
        for name, weight in weights:
            share = weight / total
            if abs(words[name] - number * share) > 5 * math.sqrt(number * share * (1 - share)):
                result.append(f"{service}: {words[name]} of {number} for {name}, which has {share:.0%}")
    return result
