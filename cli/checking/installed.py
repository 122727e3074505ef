"""What is looked at of an installation in a cluster: its control plane, its webhooks, its Pods."""

import base64
import binascii
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from admission.configuration import is_of_a_control_plane
from certs.pem import as_pem, certificates_in
from checks import installed as judging
from checks import permissions
from checks.check import Check
from checks.installed import Registered, Runner
from cli.checking.asking import Asking
from cli.checking.injecting import injection_of
from cli.checking.pods import Injection, Sorted, selects, sorted_out
from injector.configuration import CONFIG_MAP, ConfigurationError
from injector.namespaces import namespace_of
from injector.pod_roots import Standing, is_injected
from kube.builtin import CONFIG_MAPS, MUTATING, NAMESPACES, PODS, SLICES, VALIDATING
from kube.errors import ApiError
from kube.resource import Raw, Resource
from mesh.kinds import HTTP_ROUTE_GROUP, POD
from sidecars.injection.names import SIDECAR_CONTAINER
from sidecars.layout import AUTHORITY_FILE
from specs.kinds import READ

Look = tuple[str, Callable[[], Awaitable[Check | Sequence[Check]]]]

ACCOUNT: Final = "meshwright"
_ROUTES: Final = Resource(
    HTTP_ROUTE_GROUP.group, READ[HTTP_ROUTE_GROUP].versions[-1], "httproutegroups", HTTP_ROUTE_GROUP.name
)
_WRONG: Final = {"matches": [{"name": "wrong", "pathRegex": "(", "methods": ["*"]}]}
"""What no schema can refuse, and the webhook does: a regular expression that is none."""
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
"""A Pod that every namespace takes; it is never made."""


def looks(
    asking: Asking, home: str, manifests: Sequence[Mapping[str, Any]], version: tuple[int, int]
) -> list[Look]:
    """Return what is looked at, by the name of its line."""
    found = _Installed(asking, home, manifests, version)
    return [
        ("control plane", found.control_plane),
        ("its permissions", found.permissions),
        ("policy webhook", lambda: found.webhook(VALIDATING)),
        ("policy webhook asked", found.judged),
        ("injection webhook", lambda: found.webhook(MUTATING)),
        ("injection webhook asked", found.injects),
        ("Pods", found.pods),
        ("roots", found.roots),
    ]


class _Installed:
    def __init__(
        self, asking: Asking, home: str, manifests: Sequence[Mapping[str, Any]], version: tuple[int, int]
    ) -> None:
        self._asking, self._home, self._version = asking, home, version
        self._manifests = manifests
        self._wanted = {str(each["kind"]) for each in manifests}

    async def control_plane(self) -> Check:
        pods = await self._asking.all(PODS, self._home)
        found = [_runner(each) for each in pods if each["spec"].get("serviceAccountName") == ACCOUNT]
        return judging.control_plane([each for each in found if each is not None], self._home)

    async def permissions(self) -> Check:
        needs = permissions.granted(self._manifests)
        answers = await self._asking.may(needs, f"system:serviceaccount:{self._home}:{ACCOUNT}")
        do = "`meshwright install --print | kubectl apply -f -`, with this installation's values (--values)"
        who = f"ServiceAccount {self._home}/{ACCOUNT}"
        return permissions.permitted("its permissions", who, answers, do)

    async def _ours(self, resource: Resource) -> Raw | None:
        return next(filter(is_of_a_control_plane, await self._asking.all(resource)), None)

    async def webhook(self, resource: Resource) -> Sequence[Check]:
        name = "policy webhook" if resource is VALIDATING else "injection webhook"
        raw = await self._ours(resource)
        found = None if raw is None else registered(raw)
        checks = [judging.webhook(name, found, datetime.now(UTC), wanted=resource.kind in self._wanted)]
        for namespace, service in sorted(found.services if found is not None else ()):
            label = f"kubernetes.io/service-name={service}"
            slices = await self._asking.all(SLICES, namespace, label)
            checks.append(judging.service(f"{name} reached", f"{namespace}/{service}", _ready(slices)))
        return checks

    async def _asked_about(self, webhooks: Sequence[Raw]) -> str:
        """Return a namespace about which one of these webhooks is asked, empty where there is none."""
        for raw in await self._asking.all(NAMESPACES):
            labels = raw["metadata"].get("labels") or {}
            if _is_active(raw) and any(selects(each.get("namespaceSelector"), labels) for each in webhooks):
                return str(raw["metadata"]["name"])
        return ""

    async def judged(self) -> Sequence[Check]:
        raw, name = await self._ours(VALIDATING), "policy webhook asked"
        webhooks = [each for each in (raw or {}).get("webhooks") or () if _is_about(each, _ROUTES.plural)]
        namespace = await self._asked_about(webhooks)
        if not namespace:
            return ()
        body = {
            "apiVersion": _ROUTES.api_version,
            "kind": _ROUTES.kind,
            "metadata": {"name": "meshwright-check"},
            "spec": _WRONG,
        }
        try:
            await self._asking.api.create(_ROUTES, namespace, body, dry_run=True)
        except ApiError as error:
            ours = any(f'admission webhook "{each["name"]}"' in error.message for each in webhooks)
            if not ours and not error.is_of_one:
                raise
            return (judging.judged(name, namespace, str(error), ours=ours),)
        return (judging.judged(name, namespace, "it would have been taken", ours=False),)

    async def injects(self) -> Sequence[Check]:
        raw, name = await self._ours(MUTATING), "injection webhook asked"
        webhooks = (raw or {}).get("webhooks") or ()
        if not webhooks:
            return ()
        config = (await self._injection()).config
        for each in await self._asking.all(NAMESPACES):
            namespace = namespace_of(each)
            if _is_active(each) and is_injected(config, namespace):
                return (await self._offered(name, str(namespace.name)),)
        return ()

    async def _offered(self, name: str, namespace: str) -> Check:
        metadata = {"generateName": "meshwright-check-"}
        body = {"apiVersion": "v1", "kind": POD.name, "metadata": metadata, "spec": _POD}
        try:
            made = await self._asking.api.create(PODS, namespace, body, dry_run=True)
        except ApiError as error:
            if error.is_forbidden and not error.is_of_one:
                raise
            return judging.injects(name, namespace, str(error), ours=False)
        images = [str(each.get("image")) for each in _containers(made) if each["name"] == SIDECAR_CONTAINER]
        return judging.injects(
            name, namespace, images[0] if images else "it has no sidecar", ours=bool(images)
        )

    async def _injection(self) -> Injection:
        return await injection_of(self._asking, self._home, self._version)

    async def _sorted(self) -> Sorted:
        found = await self._asking.all(NAMESPACES)
        namespaces = [namespace_of(each) for each in found if _is_active(each)]
        return sorted_out(await self._injection(), namespaces, await self._asking.all(PODS))

    async def pods(self) -> Sequence[Check]:
        try:
            found = await self._sorted()
        except ConfigurationError as error:
            do = "mend it: the control plane goes on with what it had"
            return (Check.failed("injection", f"ConfigMap {self._home}/{CONFIG_MAP}: {error}", do),)
        return (
            judging.uninjected(found.without, len(found.asking)),
            judging.outdated(found.outdated, found.injected),
            judging.sidecars(found.unready, found.running),
        )

    async def roots(self) -> Check:
        config = (await self._injection()).config
        name = config.joining.roots_config_map
        hooks = [await self._ours(each) for each in (VALIDATING, MUTATING)]
        trusted = {root for each in hooks if each is not None for root in registered(each).roots}
        found = await self._sorted()
        where = sorted({*found.asking, *found.namespaces})
        standings = {each: await self._standing(each, name, trusted) for each in where}
        return judging.roots(standings, name)

    async def _standing(self, namespace: str, name: str, trusted: set[bytes]) -> Standing:
        raw = await self._asking.one(CONFIG_MAPS, namespace, name)
        if raw is None:
            return Standing.ABSENT
        there = set(_certificates(str((raw.get("data") or {}).get(AUTHORITY_FILE, "")).encode()))
        if not there or (trusted and not there <= trusted):
            return Standing.WRONG
        return Standing.RIGHT


def registered(raw: Raw) -> Registered:
    """Read a webhook configuration as the API server has it."""
    webhooks = raw.get("webhooks") or ()
    configs = [each.get("clientConfig") or {} for each in webhooks]
    services = frozenset(
        (str(each["service"]["namespace"]), str(each["service"]["name"]))
        for each in configs
        if each.get("service")
    )
    bundles = [_decoded(str(each.get("caBundle") or "")) for each in configs]
    roots = [root for each in bundles for root in _certificates(each)]
    ends = tuple(end for each in bundles for end in _ends(each))
    return Registered(str(raw["metadata"]["name"]), len(webhooks), services, ends, frozenset(roots))


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return b""


def _certificates(pem: bytes) -> Iterator[bytes]:
    try:
        found = certificates_in(pem)
    except ValueError:
        return
    yield from (as_pem([each]) for each in found)


def _ends(pem: bytes) -> Iterator[datetime]:
    try:
        found = certificates_in(pem)
    except ValueError:
        return
    yield from (each.not_valid_after_utc for each in found)


def _is_active(namespace: Raw) -> bool:
    return bool(namespace.get("status", {}).get("phase") != "Terminating")


def _is_about(webhook: Raw, plural: str) -> bool:
    return any(plural in (each.get("resources") or ()) for each in webhook.get("rules") or ())


def _ready(slices: Sequence[Raw]) -> int:
    endpoints = [each for raw in slices for each in raw.get("endpoints") or ()]
    return sum(1 for each in endpoints if (each.get("conditions") or {}).get("ready") is not False)


def _containers(pod: Raw) -> list[Raw]:
    spec = pod["spec"]
    return [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]


def _runner(pod: Raw) -> Runner | None:
    """Read a Pod of the control plane; None for one that has ended, or is to."""
    status = pod.get("status") or {}
    if status.get("phase") in ("Succeeded", "Failed") or pod["metadata"].get("deletionTimestamp"):
        return None
    conditions = {each["type"]: each for each in status.get("conditions") or ()}
    ready = conditions.get("Ready", {})
    why = str(ready.get("message") or status.get("phase") or "")
    image = str(pod["spec"]["containers"][0].get("image"))
    return Runner(str(pod["metadata"]["name"]), ready.get("status") == "True", image, why)
