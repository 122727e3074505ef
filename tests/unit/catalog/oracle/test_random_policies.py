"""Tests of the random policies: each condition that may decide a request does so often enough."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest

from catalog.oracle.decide import (
    Answer,
    Request,
    Verdict,
    accepts_everyone,
    backends,
    decide,
    places,
    split_for,
    verdicts,
)
from catalog.store.smi import targets
from catalog.store.view import MeshSettings, View
from meshwright.providers.directory.manifests import Manifests
from tests.differential.cases import case
from tests.differential.comparison import straight_to, without_certificate
from tests.differential.counts import FLOORS, Counts
from tests.differential.topology import TCP
from tests.tools.hypothesis_profiles import examples
from tests.unit.catalog.explain.test_explain import TOPOLOGY, text
from tests.unit.conftest import MANY_SECONDS

# The first test decides the requests of all.
pytestmark = [pytest.mark.timeout(MANY_SECONDS), pytest.mark.fuzzed]
ALL = 80
POLICIES = examples(20, fresh=80)
"""Every fourth one of ALL in every run; the floors below hold for ALL."""
ROOM = 1.0 if POLICIES == ALL else 0.8
"""Some of what decides comes short of its share in a quarter of the policies."""
LEAST = {
    "several targets admit it": 60,
    "one target admits what another of the same client does not": 60,
    "the method decides": 15,
    "the path decides": 50,
    "a header decides": 8,
    "a repeated header decides": 3,
    "an account with a metacharacter is nobody else": 3,
    "a match with a metacharacter in its name is named": 100,
    "a split for some requests decides": 10,
    "a split for all requests decides": 20,
    "a split decides on TCP": 3,
    "TCP is allowed": 10,
    "TCP is denied": 10,
    "the mesh is permissive": 20,
    "only the namespace is permissive": 20,
    "a caller of another namespace is allowed": 50,
    "a caller of another namespace is denied": 50,
}


def seen(manifests: Manifests) -> View:
    """Return the mesh that manifests describe."""
    return View.build(manifests.objects(), MeshSettings())


def by_http(mesh: View, request: Request, answer: Answer) -> Iterator[str]:
    """Yield the parts that decide an HTTP request, found by asking without each of them."""

    def differs(other: Request) -> bool:
        return decide(mesh, other).answer is not answer

    if differs(replace(request, method="POST" if request.method == "GET" else "GET")):
        yield "the method decides"
    if differs(replace(request, path="/elsewhere")):
        yield "the path decides"
    names = Counter(name.lower() for name, _ in request.headers)
    for index, (name, _) in enumerate(request.headers):
        fewer = replace(request, headers=request.headers[:index] + request.headers[index + 1 :])
        if name != "Host" and differs(fewer):
            repeated = names[name.lower()] > 1
            yield "a repeated header decides" if repeated else "a header decides"


def by_targets(mesh: View, request: Request, answer: Answer) -> Iterator[str]:
    """Yield the effects of targets, splits and permissive mode on a request."""
    service = mesh.services[request.service]
    port = service.port(request.port)
    assert port is not None
    split = split_for(mesh, request, port)
    for key, number, _ in backends(mesh, request, port, split):
        for place in places(mesh, key, number):
            result = [verdict for _, verdict in verdicts(mesh, request, place)]
            if result.count(Verdict.ADMITS) > 1:
                yield "several targets admit it"
            if Verdict.ADMITS in result and Verdict.OTHER_REQUESTS in result:
                yield "one target admits what another of the same client does not"
    if split is not None:
        yield f"a split for {'some' if split.matches else 'all'} requests decides"
        if request.port == TCP:
            yield "a split decides on TCP"
    if accepts_everyone(mesh, request.service.namespace):
        yield "the mesh is permissive" if mesh.config.permissive else "only the namespace is permissive"
    message = "allowed" if answer is Answer.ALLOWED else "denied"
    if request.port == TCP:
        yield f"TCP is {message}"
    if request.identity is not None and request.identity.namespace != request.service.namespace:
        yield f"a caller of another namespace is {message}"


@pytest.fixture(scope="module")
def found() -> Counter[str]:
    """Return the counts of the conditions that decide the requests of some policies."""
    counted: Counter[str] = Counter()
    for number in range(0, ALL, ALL // POLICIES):
        made = case(Random(f"1/{number}"), 12)  # noqa: S311 - test data
        policy = text(*made.documents)
        mesh = seen(TOPOLOGY.apply("b.json", policy))
        other = policy.replace("al.ce", "alice")
        confused = mesh if other == policy else seen(TOPOLOGY.apply("b.json", other))
        for request in made.requests:
            answer = decide(mesh, request).answer
            if request.port != TCP:
                counted.update(by_http(mesh, request, answer))
            counted.update(by_targets(mesh, request, answer))
            if decide(confused, request).answer is not answer:
                counted["an account with a metacharacter is nobody else"] += 1
        named = [name for target in targets(mesh).values() for rule in target.rules for name in rule.matches]
        odd = sum(not name.isalpha() for name in named)
        counted["a match with a metacharacter in its name is named"] += odd
    return counted


@pytest.mark.parametrize("what", LEAST)
def test_each_condition_decides_often_enough(found: Counter[str], what: str) -> None:
    """A rarer condition would not be covered by the comparison with real Envoys."""
    assert found[what] >= max(1.0, LEAST[what] * ROOM * POLICIES / ALL), found


def test_shares_of_answers_are_well_above_their_floors() -> None:
    """Each share of answers is at least 20 % above the floor that other tests demand."""
    counts = Counts()
    for number in range(0, ALL, ALL // POLICIES):
        made = case(Random(f"2/{number}"), 12)  # noqa: S311 - test data
        mesh = seen(TOPOLOGY.apply("b.json", text(*made.documents)))
        for asked in made.requests:
            counts.count(mesh, asked, decide(mesh, asked))
            if (place := straight_to(asked, counts.requests))[1]:
                counts.count_plain(mesh, without_certificate(asked, counts.requests), place)
        counts.count_policy(made)
    short = {name: share for name, share in counts.shares.items() if share < 1.2 * FLOORS[name]}
    assert short == {}, counts.shares
