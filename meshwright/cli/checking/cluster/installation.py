"""Checks of an installation in a cluster: the control plane, the webhooks, and the Pods."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from meshwright.cli.checking.cluster import measurements as answered
from meshwright.cli.checking.cluster import streams
from meshwright.cli.checking.cluster.client import ClusterClient
from meshwright.cli.checking.cluster.injection import injection_of
from meshwright.cli.checking.cluster.installed_values import RenderedChart
from meshwright.cli.checking.cluster.pods import Injection, PodsByState, is_active, sorted_out
from meshwright.cli.checking.cluster.webhooks import Webhooks, certificates
from meshwright.cli.checking.judgements import installation as judging
from meshwright.cli.checking.judgements import permissions
from meshwright.cli.checking.judgements import reported_problems as reported
from meshwright.cli.checking.judgements.check import Check
from meshwright.cli.checking.judgements.installation import Offer, Runner
from meshwright.kube.builtin import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    MUTATING,
    NAMESPACES,
    PODS,
    STATEFUL_SETS,
    VALIDATING,
)
from meshwright.kube.discovery import ServedResources
from meshwright.kube.errors import ApiError
from meshwright.kube.resource import Raw
from meshwright.kubernetes.injection.configuration.configuration import ConfigurationError
from meshwright.kubernetes.injection.credentials.pod_roots import ConfigMapState, asks_for_sidecars
from meshwright.kubernetes.injection.namespaces import namespace_of
from meshwright.kubernetes.status.event import EVENTS
from meshwright.kubernetes.status.events.open_problems import LABEL, unmended
from meshwright.mesh.kinds import DEPLOYMENT, HTTP_ROUTE_GROUP, JOB, POD, REPLICA_SET, STATEFUL_SET
from meshwright.providers.kubernetes.resources import newest
from meshwright.sidecars.injection.names import SIDECAR_CONTAINER
from meshwright.sidecars.layout import AUTHORITY_FILE

Look = tuple[str, Callable[[], Awaitable[Check | Sequence[Check]]]]

ACCOUNT: Final = "meshwright"
_OFFERED: Final = 50
"""Most namespaces to which a Pod is offered, in the order of their names."""
_POD: Final[Mapping[str, Any]] = {
    "securityContext": {
        "runAsNonRoot": True,
        "runAsUser": 65534,
        "seccompProfile": {"type": "RuntimeDefault"},
    },
    "automountServiceAccountToken": False,
    "containers": [
        {
            "name": "check",
            "image": "meshwright-check",
            "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
            "resources": {
                "requests": {"cpu": "1m", "memory": "1Mi"},
                "limits": {"cpu": "1m", "memory": "1Mi"},
            },
        }
    ],
}
"""A Pod for every Pod Security level; created only in dry runs."""


def looks(
    asking: ClusterClient,
    home: str,
    chart: RenderedChart,
    version: tuple[int, int],
    there: Callable[[], ServedResources],
) -> list[Look]:
    """Return the checks of an installation as pairs of name and function.

    `there` returns the resources served by the cluster, or raises KubeError.
    """
    webhooks = Webhooks(asking, home, {str(manifest["kind"]) for manifest in chart.manifests})
    reader = _InstallationReader(asking, home, webhooks, version)
    return [
        ("control plane", reader.control_plane),
        ("readiness", reader.answered),
        ("its permissions", lambda: _permissions(asking, home, chart, there())),
        ("policy webhook", lambda: webhooks.looked_at(VALIDATING)),
        ("policy webhook asked", lambda: webhooks.judged(newest(HTTP_ROUTE_GROUP, there()))),
        ("injection webhook", lambda: webhooks.looked_at(MUTATING)),
        ("injection webhook asked", reader.injects),
        ("Pods", reader.pods),
        ("proxies of Pods", reader.streams),
        ("roots", reader.roots),
        (reported.NAME, lambda: _reported(asking, home)),
    ]


async def _permissions(
    asking: ClusterClient, home: str, chart: RenderedChart, there: ServedResources
) -> Check:
    served = {(resource.group, resource.plural) for resource in there.resources}
    needs = permissions.needed(permissions.granted(chart.manifests), served)
    answers = await asking.may(needs, f"system:serviceaccount:{home}:{ACCOUNT}")
    do = "`meshwright install --print | kubectl apply -f -`, with this installation's values (--values)"
    if chart.is_assumed:
        do = f"if the installation has other values, check again with --values FILE; otherwise {do}"
    account = f"ServiceAccount {home}/{ACCOUNT}"
    return permissions.permitted("its permissions", account, answers, do, values=chart.origin)


async def _reported(asking: ClusterClient, home: str) -> Check:
    """Check the Events about objects in the control plane's namespace; some problems appear only there."""
    events = await asking.all(EVENTS, home, LABEL)
    reported_problems = [
        reported.ReportedProblem(str(notice.about), notice.reason, notice.note)
        for notice in unmended(events, datetime.now(UTC))
    ]
    return reported.reported(reported_problems, home)


class _InstallationReader:
    def __init__(
        self,
        asking: ClusterClient,
        home: str,
        webhooks: Webhooks,
        version: tuple[int, int],
    ) -> None:
        self._asking, self._home, self._webhooks = asking, home, webhooks
        self._version = version

    async def _runners(self) -> Sequence[Raw]:
        pods = await self._asking.all(PODS, self._home)
        ours = [pod for pod in pods if pod["spec"].get("serviceAccountName") == ACCOUNT]
        return [pod for pod in ours if _owner(pod) != JOB.name]  # the Job of an upgrade is no server

    async def control_plane(self) -> Check:
        runners = [runner for runner in map(_runner, await self._runners()) if runner is not None]
        if runners:
            return judging.control_plane(runners, self._home)
        stopped = {
            (kind, str(item["metadata"]["name"])): item["spec"].get("replicas", 1)
            for kind, resource in ((STATEFUL_SET, STATEFUL_SETS), (DEPLOYMENT, DEPLOYMENTS))
            for item in await self._asking.all(resource, self._home)
            if _account(item) == ACCOUNT
        }
        return judging.no_control_plane(stopped, self._home)

    async def answered(self) -> Sequence[Check]:
        return await answered.looked_at(self._asking.api, self._home, await self._runners())

    async def injects(self) -> Sequence[Check]:
        raw, name = await self._webhooks.ours(MUTATING), "injection webhook asked"
        if not (raw or {}).get("webhooks"):
            return ()
        try:
            config, revision = (await self._injection()).config, await self._webhooks.revision()
        except ConfigurationError:
            return ()  # the check of Pods reports this error
        active = [namespace_of(item) for item in await self._asking.all(NAMESPACES) if is_active(item)]
        asking = sorted(
            str(namespace.name) for namespace in active if asks_for_sidecars(config, namespace, revision)
        )
        offered = [await self._offered(item) for item in asking[:_OFFERED]]
        return judging.offers(name, offered, len(asking))

    async def _offered(self, namespace: str) -> Offer:
        """Create a Pod in a dry run: the API server then applies the webhook, quotas and Pod Security."""
        metadata = {"generateName": "meshwright-check-"}
        body = {"apiVersion": "v1", "kind": POD.name, "metadata": metadata, "spec": _POD}
        try:
            made = await self._asking.api.create(PODS, namespace, body, dry_run=True)
        except ApiError as error:
            # Only a missing permission of the user is an error here; a refusal of the Pod is the observation.
            if error.is_forbidden and not error.is_of_one:
                raise
            return Offer(namespace, refused=str(error))
        images = [
            str(container.get("image"))
            for container in _containers(made)
            if container["name"] == SIDECAR_CONTAINER
        ]
        return Offer(namespace, image=images[0] if images else "")

    async def _injection(self) -> Injection:
        return await injection_of(self._asking, self._home, self._version)

    async def _sorted(self) -> PodsByState:
        result = await self._asking.all(NAMESPACES)
        namespaces = [namespace_of(item) for item in result if is_active(item)]
        injection, revision = await self._injection(), await self._webhooks.revision()
        return sorted_out(injection, namespaces, await self._asking.all(PODS), datetime.now(UTC), revision)

    async def pods(self) -> Sequence[Check]:
        try:
            pods_by_state = await self._sorted()
        except ConfigurationError as error:
            do = "correct the configuration; until then the control plane uses the last valid one"
            return (Check.failed("injection", str(error), do),)
        return (
            judging.misworded(pods_by_state.misworded),
            judging.outside(await self._webhooks.outside(pods_by_state.asking)),
            judging.uninjected(pods_by_state.without, len(pods_by_state.asking)),
            judging.outdated(pods_by_state.outdated, pods_by_state.injected),
            judging.sidecars(pods_by_state.unready, pods_by_state.late, pods_by_state.injected),
        )

    async def streams(self) -> Sequence[Check]:
        try:
            ready = (await self._sorted()).ready
        except ConfigurationError:
            return ()  # the check of Pods reports this error
        return (judging.streams(await streams.without(self._asking.api, ready), len(ready), streams.MOST),)

    async def roots(self) -> Sequence[Check]:
        try:
            name, pods_by_state = (
                (await self._injection()).config.joining.roots_config_map,
                await self._sorted(),
            )
        except ConfigurationError:
            return ()
        trusted = await self._webhooks.roots()
        where = sorted({*pods_by_state.asking, *pods_by_state.namespaces})
        standings = {item: await self._standing(item, name, trusted) for item in where}
        return (judging.roots(standings, name),)

    async def _standing(self, namespace: str, name: str, trusted: Collection[bytes]) -> ConfigMapState:
        raw = await self._asking.one(CONFIG_MAPS, namespace, name)
        if raw is None:
            return ConfigMapState.ABSENT
        there = set(certificates(str((raw.get("data") or {}).get(AUTHORITY_FILE, "")).encode()))
        return (
            ConfigMapState.WRONG
            if not there or (trusted and not there <= {*trusted})
            else ConfigMapState.RIGHT
        )


def _containers(pod: Raw) -> list[Raw]:
    spec = pod["spec"]
    return [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]


def _account(owner: Raw) -> object:
    return (owner["spec"]["template"].get("spec") or {}).get("serviceAccountName")


def _owner(pod: Raw) -> str:
    """Return the kind of a Pod's controller, empty for none."""
    owners = pod["metadata"].get("ownerReferences") or ()
    return next((str(owner["kind"]) for owner in owners if owner.get("controller")), "")


def _runner(pod: Raw) -> Runner | None:
    """Read name, readiness and image of a control plane's Pod; return None for an ended or deleted Pod."""
    status = pod.get("status") or {}
    if status.get("phase") in ("Succeeded", "Failed") or pod["metadata"].get("deletionTimestamp"):
        return None
    conditions = {condition["type"]: condition for condition in status.get("conditions") or ()}
    ready = conditions.get("Ready", {})
    scheduled = conditions.get("PodScheduled", {})
    unscheduled = scheduled.get("message") if scheduled.get("status") == "False" else None
    waiting = next(
        (
            reason
            for status in status.get("containerStatuses") or ()
            if (reason := ((status.get("state") or {}).get("waiting") or {}).get("reason"))
        ),
        None,
    )
    # From the most specific reason to the least specific one.
    messages = (unscheduled, waiting, ready.get("message"), status.get("phase"))
    why = str(next(filter(None, messages), ""))
    image = str(pod["spec"]["containers"][0].get("image"))
    owner = DEPLOYMENT if _owner(pod) == REPLICA_SET.name else STATEFUL_SET
    return Runner(str(pod["metadata"]["name"]), ready.get("status") == "True", image, why, owner)
