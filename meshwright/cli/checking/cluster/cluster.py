"""Checks of `meshwright check --kubernetes`: of a cluster before an installation, and of the installation."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from meshwright.chart.template.functions import from_yaml
from meshwright.cli.checking.cluster import installation as installed
from meshwright.cli.checking.cluster.client import ClusterClient, looked
from meshwright.cli.checking.cluster.installed_values import RenderedChart, installed_chart
from meshwright.cli.checking.cluster.webhooks import ready_behind
from meshwright.cli.checking.judgements import cluster as judging
from meshwright.cli.checking.judgements import permissions
from meshwright.cli.checking.judgements.check import Check
from meshwright.cli.checking.judgements.cluster import Injector
from meshwright.cli.checking.judgements.environment import storage
from meshwright.cli.checking.judgements.environment.storage import StorageClass
from meshwright.cli.errors import CommandFailed
from meshwright.cli.offline import release
from meshwright.kube.api import Api
from meshwright.kube.builtin import (
    DAEMON_SETS,
    DEFINITIONS,
    DEPLOYMENTS,
    MUTATING,
    PODS,
    SERVICES,
    STORAGE_CLASSES,
    VALIDATING,
    minor_version,
)
from meshwright.kube.connection.connection import find_connection
from meshwright.kube.discovery import ServedResources, served
from meshwright.kube.errors import KubeError
from meshwright.kubernetes.injection.decision import OSM_UUID
from meshwright.mesh.kinds import GATEWAY_API, STATEFUL_SET, Kind
from meshwright.specs.kinds import READ
from meshwright.specs.osm.own_names import CONTROL_PLANE, WEBHOOKS
from meshwright.specs.osm.unenforced_policy import UNENFORCED
from meshwright.specs.reference.meanings.definitions import INSTALLED

_SERVICE: Final = "Service "
_IS_DEFAULT: Final = "storageclass.kubernetes.io/is-default-class"
_CONTROL_PLANE: Final = "app.kubernetes.io/name=meshwright,app.kubernetes.io/component=control-plane"
_NODES: Final = frozenset({"istio-cni-node", "ztunnel", "linkerd-cni", "consul-cni", "kuma-cni-node"})


@dataclass(frozen=True, slots=True)
class Place:
    """The cluster, the control plane's namespace, and the chart; None for that of the installation there."""

    kubeconfig: Path | None
    context: str
    home: str
    chart: RenderedChart | None = None


def chart_of(values: Path | None, home: str) -> RenderedChart:
    """Return the chart rendered with a values file, in a namespace; raise CommandFailed."""
    texts = release.manifests(home, [values] if values else ())
    origin = f"of {values}" if values else "are the chart's defaults"
    return RenderedChart([dict(from_yaml(text)) for text in texts], origin)


def checks(place: Place, *, before: bool) -> Sequence[Check]:
    """Check a cluster; raise CommandFailed if the kubeconfig does not determine one."""
    try:
        api = Api(find_connection(place.kubeconfig, place.context))
    except KubeError as error:
        raise CommandFailed(" ".join(str(error).split())) from error
    return asyncio.run(_checks(api, place, before=before))


async def _checks(api: Api, place: Place, *, before: bool) -> Sequence[Check]:
    async with api:
        asking = ClusterClient(api)
        version, text = (0, 0), ""
        try:
            # First and alone: without an API server, every other check would fail for the same reason.
            version, text = await _version(api)
        except KubeError as error:
            do = "name the right cluster with --kubeconfig and --context"
            return (Check.failed("API server", str(error), do),)
        # A failed discovery is raised again in each look that needs it, so the other looks still work.
        there = partial(_there, await _served(api))
        chart = place.chart or await installed_chart(asking, place.home)
        looks: list[tuple[str, Callable[[], Awaitable[Check | Sequence[Check]]]]] = [
            ("kinds", lambda: _kinds(asking, place.home, there(), before=before)),
            ("Gateway API", lambda: _gateway_api(there())),
            ("conversion", lambda: _conversions(asking)),
            ("other meshes", lambda: _other_meshes(asking)),
            ("Open Service Mesh", lambda: _osm(asking)),
        ]
        if before:
            looks.insert(0, ("permissions", lambda: _permissions(asking, there(), chart)))
            looks += [
                ("volume", lambda: _volume(asking, chart)),
                ("definitions", lambda: _definitions(asking, place.home, chart)),
            ]
        else:
            looks += installed.looks(asking, place.home, chart, version, there)
        try:
            result = await asyncio.gather(*(looked(name, look) for name, look in looks))
        finally:
            await asking.end()
        return (judging.api_server(version, text), *(check for item in result for check in item))


async def _version(api: Api) -> tuple[tuple[int, int], str]:
    answer = await api.read("/version")
    return minor_version(answer) or (0, 0), str(answer.get("gitVersion", "?"))


async def _served(api: Api) -> ServedResources | KubeError:
    try:
        return await served(api)
    except KubeError as error:
        return error


def _there(result: ServedResources | KubeError) -> ServedResources:
    if isinstance(result, KubeError):
        raise result
    return result


async def _kinds(asking: ClusterClient, home: str, there: ServedResources, *, before: bool) -> Check:
    other = "" if before else await _other_release(asking, home)
    return judging.kinds(_versions(there, INSTALLED), before=before, other_release=other)


async def _other_release(asking: ClusterClient, home: str) -> str:
    """Return the installed version if it is another one than ours; empty if it is ours or unknown."""
    try:
        services = await asking.all(SERVICES, home, _CONTROL_PLANE)
    except KubeError:  # without this right a missing kind is a failure, as for an installation of ours
        return ""
    labels = (raw["metadata"].get("labels") or {} for raw in services)
    versions = {str(item.get("app.kubernetes.io/version", "")) for item in labels}
    return min(versions - {version("meshwright"), ""}, default="")


async def _gateway_api(there: ServedResources) -> Sequence[Check]:
    """Check the definitions of the Gateway API; without any of them, return an empty list."""
    versions = _versions(there, (kind for kind in READ if kind.group == GATEWAY_API))
    return (judging.gateway_api(versions),) if any(versions.values()) else ()


def _versions(there: ServedResources, kinds: Iterable[Kind]) -> Mapping[Kind, tuple[str, ...]]:
    """Return the served versions of kinds."""
    return {
        kind: tuple(resource.version for resource in there.versions_of_kind(kind.group, kind.name))
        for kind in kinds
    }


async def _conversions(asking: ClusterClient) -> Sequence[Check]:
    """Check the conversion webhooks in CustomResourceDefinitions of the kinds read by the server.

    Without such webhooks, return an empty list.
    """
    result: dict[str, list[str]] = {}
    for raw in await asking.all(DEFINITIONS):
        spec = raw["spec"]
        kind, conversion = Kind(spec["names"]["kind"], spec["group"]), spec.get("conversion") or {}
        if (kind in READ or kind in UNENFORCED) and conversion.get("strategy") == "Webhook":
            config = conversion["webhook"].get("clientConfig") or {}
            result.setdefault(_converter(config), []).append(str(kind))
    services = {name: name.removeprefix(_SERVICE).split("/") for name in result if name.startswith(_SERVICE)}
    away = [name for name, at in services.items() if not await ready_behind(asking, *at)]
    return (judging.conversions(result, away),) if result else ()


def _converter(config: Mapping[str, Any]) -> str:
    service = config.get("service")
    return f"{_SERVICE}{service['namespace']}/{service['name']}" if service else str(config.get("url"))


async def _permissions(asking: ClusterClient, there: ServedResources, chart: RenderedChart) -> Check:
    plurals = {(resource.group, resource.kind): resource.plural for resource in there.resources}
    unknown = permissions.unserved(chart.manifests, plurals)
    answers = await asking.may(permissions.to_apply(chart.manifests, plurals))
    do = "ask an administrator of the cluster, or `meshwright install --print` for one to read and apply"
    return permissions.permitted("permissions", "you", answers, do, unknown)


async def _volume(asking: ClusterClient, chart: RenderedChart) -> Check:
    """Check whether the volume claim of a StatefulSet of the control plane, if there is one, can be bound."""
    claims = [
        claim["spec"]
        for manifest in chart.manifests
        if manifest["kind"] == STATEFUL_SET.name
        for claim in manifest["spec"].get("volumeClaimTemplates") or ()
    ]
    wanted = str(claims[0].get("storageClassName") or "") if claims else None
    classes = [
        StorageClass(
            str(raw["metadata"]["name"]),
            (raw["metadata"].get("annotations") or {}).get(_IS_DEFAULT) == "true",
        )
        for raw in await asking.all(STORAGE_CLASSES)
    ]
    return storage.volume(wanted, classes)


async def _definitions(asking: ClusterClient, home: str, chart: RenderedChart) -> Check:
    """Check for CustomResourceDefinitions of the chart without a release of ours in this namespace."""
    of_chart = {
        str(manifest["metadata"]["name"])
        for manifest in chart.manifests
        if manifest["kind"] == DEFINITIONS.kind
    }
    ours = {f"{kind.group}/{kind.name}" for kind in INSTALLED}
    foreign = []
    for raw in await asking.all(DEFINITIONS):
        metadata, spec = raw["metadata"], raw["spec"]
        named = str(metadata["name"]) in of_chart or f"{spec['group']}/{spec['names']['kind']}" in ours
        if named and not _is_of_release(metadata, home):
            foreign.append(str(metadata["name"]))
    return storage.definitions(sorted(foreign), installed=bool(of_chart))


def _is_of_release(metadata: Mapping[str, Any], home: str) -> bool:
    """Return whether an object belongs to a release in `home` for Helm, by label and annotations."""
    annotations = metadata.get("annotations") or {}
    managed = (metadata.get("labels") or {}).get("app.kubernetes.io/managed-by") == "Helm"
    return managed and annotations.get("meta.helm.sh/release-namespace") == home


async def _other_meshes(asking: ClusterClient) -> Check:
    injectors = [
        Injector(
            str(webhook.get("name")), str(raw["metadata"]["name"]), webhook.get("failurePolicy") != "Ignore"
        )
        for raw in await asking.all(MUTATING)
        for webhook in raw.get("webhooks") or ()
    ]
    daemons = [
        f"{raw['metadata']['namespace']}/{raw['metadata']['name']}"
        for raw in await asking.all(DAEMON_SETS)
        if raw["metadata"]["name"] in _NODES
    ]
    return judging.other_meshes(injectors, daemons)


async def _osm(asking: ClusterClient) -> Check:
    planes = [
        f"{raw['metadata']['namespace']}/{raw['metadata']['name']}"
        for raw in await asking.all(DEPLOYMENTS)
        if raw["metadata"]["name"] in CONTROL_PLANE
    ]
    hooks = [
        f"{resource.kind.lower()}/{raw['metadata']['name']}"
        for resource in (MUTATING, VALIDATING)
        for raw in await asking.all(resource)
        if any(webhook.get("name") in WEBHOOKS for webhook in raw.get("webhooks") or ())
    ]
    pods = [raw for raw in await asking.all(PODS) if OSM_UUID in (raw["metadata"].get("labels") or {})]
    return judging.open_service_mesh(sorted(planes), hooks, len(pods))
