"""Tests of discovery: the served kinds, by the answers of new and old API servers."""

from typing import Any

import pytest

from meshwright.kube.discovery import ServedResources, newness, served
from meshwright.kube.errors import KubeError, Nonsense
from meshwright.kube.resource import Resource
from tests.unit.kube.scripted_api import Line, ReceivedRequest, ScriptedServer, answering, api_of, failure

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


async def test_aggregated_discovery_needs_two_requests() -> None:
    """Kinds that cannot be listed and watched are omitted. A stale group is unknown."""
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

    async def play(asked: ReceivedRequest, line: Line) -> None:
        assert "APIGroupDiscoveryList" in dict(asked.headers)["accept"]
        await line.answer({"/api": core, "/apis": named}[asked.path])

    async with ScriptedServer(play) as played, api_of(played) as api:
        served_resources = await served(api)
        assert served_resources == ServedResources(
            (SERVICES, NAMESPACES, *SPLITS), frozenset({"metrics.k8s.io"})
        )
        assert served_resources.versions_of_kind("split.smi-spec.io", "TrafficSplit") == tuple(SPLITS)
        assert await served(api, {"split.smi-spec.io"}) == ServedResources(tuple(SPLITS))


async def test_older_server_is_asked_for_each_version_of_the_wanted_groups() -> None:
    """A group whose API service is unavailable is unknown, and other groups are not requested."""
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

    async def play(asked: ReceivedRequest, line: Line) -> None:
        if asked.path in answers:
            return await line.answer(answers[asked.path])
        return await line.answer(failure(503, "ServiceUnavailable", "x"), 503)

    async with ScriptedServer(play) as played, api_of(played) as api:
        served_resources = await served(api, {"", "split.smi-spec.io", "metrics.k8s.io"})
        assert served_resources == ServedResources(
            (SERVICES, NAMESPACES, *SPLITS), frozenset({"metrics.k8s.io"})
        )
        assert "/apis/apps/v1" not in [item.path for item in played.asked]


@pytest.mark.parametrize("said", [{}, {"kind": "Pod"}, {"kind": 5}])
async def test_answer_of_another_kind_is_an_error(said: object) -> None:
    """Such an answer must not mean that no kind is served."""
    async with ScriptedServer(answering(said)) as played, api_of(played) as api:
        with pytest.raises(KubeError, match=r"the discovery answer of the API server (has|lacks)"):
            await served(api)


NO_GROUPS: tuple[Any, ...] = (None, [], 5, [5], {})


@pytest.mark.parametrize("none", NO_GROUPS)
@pytest.mark.parametrize(
    ("kind", "field"),
    [("APIGroupDiscoveryList", "items"), ("APIGroupList", "groups"), ("APIVersions", "versions")],
)
async def test_answer_without_any_group_is_an_error(kind: str, field: str, none: object) -> None:
    """It would read as if no kind were served, and all policy would be dropped.

    Every server has some group.
    """
    answer = {"kind": kind, field: none}
    async with ScriptedServer(answering(answer)) as played, api_of(played) as api:
        with pytest.raises(Nonsense, match=r"the discovery answer of the API server (has|lacks)"):
            await served(api)


@pytest.mark.parametrize(
    "versions",
    [
        5,
        [5],
        [{"version": "v1", "resources": 5}],
        [{"version": "v1", "resources": [5]}],
        *(
            [_version("v1", {"resource": "trafficsplits", "verbs": verbs, "responseKind": {}})]
            for verbs in (5, "list watch", {"list": 1})
        ),
    ],
)
async def test_group_with_wrong_types_is_unknown(versions: object) -> None:
    """The other groups are still read, and an unwanted group has no effect."""
    split = {"metadata": {"name": "split.smi-spec.io"}, "versions": versions}
    good = _group("specs.smi-spec.io", _version("v1", _resource("tcproutes", "TCPRoute", ALL)))
    answer = {"kind": "APIGroupDiscoveryList", "items": [split, good]}
    routes = Resource("specs.smi-spec.io", "v1", "tcproutes", "TCPRoute")
    async with ScriptedServer(answering(answer)) as played, api_of(played) as api:
        named = {"split.smi-spec.io", "specs.smi-spec.io"}
        assert await served(api, named) == ServedResources((routes,), frozenset({"split.smi-spec.io"}))
        assert await served(api, {"specs.smi-spec.io"}) == ServedResources((routes,))


async def test_older_servers_group_with_wrong_types_is_unknown() -> None:
    """Unreadable versions and unreadable resources are treated alike."""
    groups: list[Any] = [
        {"name": "split.smi-spec.io", "versions": 5},
        {"name": "specs.smi-spec.io", "versions": [{"version": "v1"}]},
    ]
    answers: dict[str, Any] = {
        "/apis": {"kind": "APIGroupList", "groups": groups},
        "/apis/specs.smi-spec.io/v1": {"kind": "APIResourceList", "resources": 5},
    }

    async def play(asked: ReceivedRequest, line: Line) -> None:
        await line.answer(answers[asked.path])

    named = {"split.smi-spec.io", "specs.smi-spec.io"}
    async with ScriptedServer(play) as played, api_of(played) as api:
        assert await served(api, named) == ServedResources((), frozenset(named))


@pytest.mark.parametrize(
    ("groups", "asked"), [(None, {"/api", "/apis"}), ({""}, {"/api"}), ({"split.smi-spec.io"}, {"/apis"})]
)
async def test_only_wanted_groups_are_requested(groups: set[str] | None, asked: set[str]) -> None:
    """The core group has another path than all others."""
    async with ScriptedServer(answering(_aggregated(_group("apps")))) as played, api_of(played) as api:
        await served(api, groups)
        assert {item.path for item in played.asked} == asked


def test_versions_are_ordered_as_by_kubernetes() -> None:
    """Stable versions precede beta and alpha, and then the higher number comes first.

    Other names are the lowest.
    """
    order = ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10"]
    assert sorted(order[4:8] + order[:4], key=newness, reverse=True) == order[:8]
    assert all(
        newness(strange) < newness("v1alpha1")
        for strange in (*order[8:], "v", "", "v1gamma1", "v٣", f"v{'9' * 5000}")
    )
