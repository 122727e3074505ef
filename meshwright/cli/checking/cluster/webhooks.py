"""Checks of a control plane's webhooks: their registration, and their answers."""

import base64
import binascii
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from meshwright.cli.checking.cluster.client import ClusterClient
from meshwright.cli.checking.cluster.pods import is_active, selects
from meshwright.cli.checking.judgements import installation as judging
from meshwright.cli.checking.judgements.check import Check
from meshwright.cli.checking.judgements.installation import WebhookRegistration
from meshwright.kube.builtin import MUTATING, NAMESPACES, SLICES, VALIDATING
from meshwright.kube.errors import ApiError
from meshwright.kube.resource import Raw, Resource
from meshwright.kubernetes.admission.configuration import WEBHOOK, home_of, is_of_a_control_plane
from meshwright.specs.annotations import REVISION
from meshwright.tls.pem import as_pem, certificates_in

_WRONG: Final = {"matches": [{"name": "wrong", "pathRegex": "(", "methods": ["*"]}]}
"""An object that only the webhook can refuse: an invalid regular expression, which schemas accept."""


class Webhooks:
    """Admission webhooks of the control plane in namespace `home`.

    `wanted` are the kinds of the chart's manifests.
    """

    def __init__(self, asking: ClusterClient, home: str, wanted: Collection[str]) -> None:
        self._asking, self._home, self._wanted = asking, home, wanted

    async def ours(self, resource: Resource) -> Raw | None:
        """Return the control plane's webhook configuration.

        Without one, return a webhook configuration of Meshwright without an owner's label, or None. Raises
        KubeError.
        """
        there = [item for item in await self._asking.all(resource) if is_of_a_control_plane(item)]
        # Reversed, so that the first of several with the same owner is used.
        homes = {home_of(item): item for item in reversed(there)}
        return homes.get(self._home, homes.get(""))

    async def revision(self) -> str:
        """Return this control plane's revision from a webhook's label; empty without the label."""
        for resource in (MUTATING, VALIDATING):
            if (raw := await self.ours(resource)) is not None:
                return str((raw["metadata"].get("labels") or {}).get(REVISION, ""))
        return ""

    async def roots(self) -> frozenset[bytes]:
        """Return the certificates with which API servers verify the webhooks."""
        hooks = [await self.ours(resource) for resource in (VALIDATING, MUTATING)]
        return frozenset(root for hook in hooks if hook is not None for root in registered(hook).roots)

    async def looked_at(self, resource: Resource) -> Sequence[Check]:
        """Check the registration of the webhooks, and the ready endpoints of their Services."""
        name = "policy webhook" if resource is VALIDATING else "injection webhook"
        raw = await self.ours(resource)
        registration = None if raw is None else registered(raw)
        checks = [
            judging.webhook(name, registration, datetime.now(UTC), wanted=resource.kind in self._wanted)
        ]
        for namespace, service in sorted(registration.services if registration is not None else ()):
            ready = await ready_behind(self._asking, namespace, service)
            checks.append(judging.service(f"{name} reached", f"{namespace}/{service}", ready))
        return checks

    async def judged(self, routes: Resource | None) -> Sequence[Check]:
        """Offer an invalid object in a dry run; without a matching webhook or kind, return no check."""
        raw, name = await self.ours(VALIDATING), "policy webhook asked"
        if routes is None:
            return ()
        webhooks = [
            webhook for webhook in (raw or {}).get("webhooks") or () if _is_about(webhook, routes.plural)
        ]
        namespace = await self._selected_namespace(webhooks)
        if not namespace:
            return ()
        metadata = {"name": "meshwright-check"}
        body = {"apiVersion": routes.api_version, "kind": routes.kind, "metadata": metadata}
        try:
            await self._asking.api.create(
                routes, namespace, {**body, **_invalid_object(routes)}, dry_run=True
            )
        except ApiError as error:
            # The message is the only place where the API server names the webhook that refused.
            ours = any(f'admission webhook "{webhook["name"]}"' in error.message for webhook in webhooks)
            # A missing permission is no answer of any webhook. A refusal of this object by something else is
            # one.
            if not ours and not error.is_of_one:
                raise
            return (judging.judged(name, namespace, str(error), ours=ours),)
        return (judging.judged(name, namespace, "the API server would have accepted the object", ours=False),)

    async def outside(self, namespaces: Collection[str]) -> Sequence[str]:
        """Return the given namespaces outside the policy webhook's namespace selector.

        Such namespaces do not belong to the mesh.
        """
        hooks = ((await self.ours(VALIDATING)) or {}).get("webhooks") or ()
        scope = [hook.get("namespaceSelector") for hook in hooks if hook["name"] == WEBHOOK]
        if not scope:
            return ()
        return [
            name
            for raw in await self._asking.all(NAMESPACES)
            if (name := str(raw["metadata"]["name"])) in namespaces
            and not selects(scope[0], raw["metadata"].get("labels") or {})
        ]

    async def _selected_namespace(self, webhooks: Sequence[Raw]) -> str:
        """Return the name of a namespace selected by one of these webhooks; empty without one."""
        for raw in await self._asking.all(NAMESPACES):
            labels = raw["metadata"].get("labels") or {}
            if is_active(raw) and any(
                selects(webhook.get("namespaceSelector"), labels) for webhook in webhooks
            ):
                return str(raw["metadata"]["name"])
        return ""


async def ready_behind(asking: ClusterClient, namespace: str, service: str) -> int:
    """Return the number of ready endpoints of a Service; raise KubeError."""
    slices = await asking.all(SLICES, namespace, f"kubernetes.io/service-name={service}")
    endpoints = [endpoint for raw in slices for endpoint in raw.get("endpoints") or ()]
    # A missing condition means ready (discovery.k8s.io/v1).
    return sum(1 for endpoint in endpoints if (endpoint.get("conditions") or {}).get("ready") is not False)


def registered(raw: Raw) -> WebhookRegistration:
    """Read the Services and root certificates from a webhook configuration of the cluster."""
    webhooks = raw.get("webhooks") or ()
    configs = [webhook.get("clientConfig") or {} for webhook in webhooks]
    services = frozenset(
        (str(config["service"]["namespace"]), str(config["service"]["name"]))
        for config in configs
        if config.get("service")
    )
    bundles = [_decoded(str(config.get("caBundle") or "")) for config in configs]
    roots = [root for bundle in bundles for root in certificates(bundle)]
    ends = tuple(end for bundle in bundles for end in _ends(bundle))
    return WebhookRegistration(str(raw["metadata"]["name"]), len(webhooks), services, ends, frozenset(roots))


def certificates(pem: bytes) -> Iterator[bytes]:
    """Yield the certificates in a PEM text one by one; an invalid text is treated as empty."""
    try:
        result = certificates_in(pem)
    except ValueError:
        return
    yield from (as_pem([certificate]) for certificate in result)


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return b""


def _ends(pem: bytes) -> Iterator[datetime]:
    try:
        result = certificates_in(pem)
    except ValueError:
        return
    yield from (certificate.not_valid_after_utc for certificate in result)


def _is_about(webhook: Raw, plural: str) -> bool:
    return any(plural in (rule.get("resources") or ()) for rule in webhook.get("rules") or ())


def _invalid_object(routes: Resource) -> Raw:
    """Return the invalid object in a version of the kind; before v1alpha3, the kind had no `spec`."""
    return _WRONG if routes.version in ("v1alpha1", "v1alpha2") else {"spec": _WRONG}
