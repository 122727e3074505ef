"""What is served, as new and old servers say it."""

from typing import Any

import pytest

from kube.discovery import Served, newness, served
from kube.errors import KubeError
from kube.resource import Resource
from tests.unit.kube.played import Asked, Line, Played, answering, api_of, failure

ALL = ["get", "list", "watch", "create"]
SERVICES = Resource("", "v1", "services", "Service")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
SPLITS = [
    Resource("split.smi-spec.io", version, "trafficsplits", "TrafficSplit")
    for version in ("v1alpha4", "v1alpha2")
]


def _group(name: str, *versions: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": name} if name else {}, "versions": list(versions)}


def _version(version: str, *resources: dict[str, Any], freshness: str = "Current") -> dict[str, Any]:
    return {"version": version, "resources": list(resources), "freshness": freshness}


def _resource(plural: str, kind: str, verbs: list[str], scope: str = "Namespaced") -> dict[str, Any]:
    return {"resource": plural, "responseKind": {"kind": kind}, "scope": scope, "verbs": verbs}


def _aggregated(*groups: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": list(groups)}


async def test_aggregated() -> None:
    """Newer servers say everything in two answers; what cannot be listed and watched does not count."""
    core = _aggregated(_group("", _version(
        "v1",
        _resource("services", "Service", ALL),
        _resource("namespaces", "Namespace", ALL, "Cluster"),
        _resource("bindings", "Binding", ["create"]),
    )))  # fmt: skip
    named = _aggregated(
        _group(
            "split.smi-spec.io",
            _version("v1alpha4", _resource("trafficsplits", "TrafficSplit", ALL)),
            _version("v1alpha2", _resource("trafficsplits", "TrafficSplit", ALL)),
        ),
        _group("metrics.k8s.io", _version("v1beta1", freshness="Stale")),
    )

    async def play(asked: Asked, line: Line) -> None:
        assert "APIGroupDiscoveryList" in dict(asked.headers)["accept"]
        await line.answer({"/api": core, "/apis": named}[asked.path])

    async with Played(play) as played, api_of(played) as api:
        found = await served(api)
        assert found == Served((SERVICES, NAMESPACES, *SPLITS), frozenset({"metrics.k8s.io"}))
        assert found.of("split.smi-spec.io", "TrafficSplit") == tuple(SPLITS)
        assert await served(api, {"split.smi-spec.io"}) == Served(tuple(SPLITS))


async def test_group_by_group() -> None:
    """Older servers are asked for each version of the groups that matter; one that is away is unknown."""
    bare = {"name": "trafficsplits", "kind": "TrafficSplit", "namespaced": True, "verbs": ALL}
    answers: dict[str, Any] = {
        "/api": {"kind": "APIVersions", "versions": ["v1"]},
        "/apis": {"kind": "APIGroupList", "groups": [
            {"name": "split.smi-spec.io", "versions": [{"version": "v1alpha4"}, {"version": "v1alpha2"}]},
            {"name": "metrics.k8s.io", "versions": [{"version": "v1beta1"}]},
            {"name": "apps", "versions": [{"version": "v1"}]},
        ]},
        "/api/v1": {"kind": "APIResourceList", "resources": [
            {"name": "services", "kind": "Service", "namespaced": True, "verbs": ALL},
            {"name": "services/status", "kind": "Service", "namespaced": True, "verbs": ALL},
            {"name": "namespaces", "kind": "Namespace", "namespaced": False, "verbs": ALL},
        ]},
        "/apis/split.smi-spec.io/v1alpha4": {"kind": "APIResourceList", "resources": [bare]},
        "/apis/split.smi-spec.io/v1alpha2": {"kind": "APIResourceList", "resources": [bare]},
    }  # fmt: skip

    async def play(asked: Asked, line: Line) -> None:
        if asked.path in answers:
            return await line.answer(answers[asked.path])
        return await line.answer(failure(503, "ServiceUnavailable", "x"), 503)

    async with Played(play) as played, api_of(played) as api:
        found = await served(api, {"", "split.smi-spec.io", "metrics.k8s.io"})
        assert found == Served((SERVICES, NAMESPACES, *SPLITS), frozenset({"metrics.k8s.io"}))
        assert "/apis/apps/v1" not in [each.path for each in played.asked]


@pytest.mark.parametrize("said", [{}, {"kind": "Pod"}, {"kind": 5}])
async def test_nonsense(said: object) -> None:
    """An answer of another kind is no answer, never that nothing is served."""
    async with Played(answering(said)) as played, api_of(played) as api:
        with pytest.raises(KubeError, match="what is served"):
            await served(api)


async def test_wrong_types() -> None:
    """Parts that are not what they should be are left out."""
    wrong: list[Any] = [5, [5], [_group("", {"resources": 5})], [{"metadata": [], "versions": {}}]]
    for items in wrong:
        said = {"kind": "APIGroupDiscoveryList", "items": items}
        async with Played(answering(said)) as played, api_of(played) as api:
            assert await served(api) == Served()
    no_verbs: list[Any] = [5, [{}], "list watch"]
    for verbs in no_verbs:
        resource = {"resource": "services", "verbs": verbs, "responseKind": {"kind": "Service"}}
        said = _aggregated(_group("", _version("v1", resource)))
        async with Played(answering(said)) as played, api_of(played) as api:
            assert await served(api) == Served()
    async with Played(answering({"kind": "APIVersions", "versions": 5})) as played, api_of(played) as api:
        assert await served(api) == Served()


def test_newest() -> None:
    """Kubernetes' own order: stable before beta before alpha, then by number."""
    order = ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10"]
    assert sorted(order[4:8] + order[:4], key=newness, reverse=True) == order[:8]
    assert all(
        newness(strange) < newness("v1alpha1")
        for strange in (*order[8:], "v", "", "v1gamma1", "v٣", f"v{'9' * 5000}")
    )
