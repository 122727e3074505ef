"""A Secret for each Pod, for Pods that do not join by tokens: created before the Pod, kept and deleted."""

import asyncio
import contextlib
import uuid
from collections.abc import Callable, Coroutine, Iterator, Mapping
from datetime import datetime
from typing import Any, Final, Protocol
from urllib.parse import urlencode

import structlog

from certs.errors import CertificateError
from certs.keys.material import ProxyCertificate
from meshwright.kube.api import Api
from meshwright.kube.builtin import PODS, SECRETS
from meshwright.kube.errors import KubeError, Reason
from meshwright.kubernetes.admission.registration import rest
from meshwright.kubernetes.injection.credentials.pod_secrets import (
    PodSecretState,
    Step,
    content,
    document,
    is_young,
    owned_by,
    selector,
    step,
)
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import ProxyUuid, is_dns_label
from meshwright.sidecars.injection.names import PROXY_UUID_LABEL, secret_name

SOON: Final = 1.0
"""Seconds between two checks while Pods are being created."""

LOOK_SECONDS: Final = 300.0
"""Seconds between two checks otherwise; certificates live for days."""

_METADATA: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
"""Media type of lists without data, so that keys are not read (Kubernetes API, metadata-only fetches)."""

_log = structlog.get_logger("injector.secret_keeper")


class Proxies(Protocol):
    """Issuer of proxy certificates; its methods are called from threads."""

    def issue_for(self, name: ProxyName) -> ProxyCertificate:
        """Issue a certificate. Raises CertificateError."""
        ...

    def revoke(self, serial: str, why: str = "") -> object:
        """Revoke a certificate. Raises CertificateError."""
        ...

    def trust_bundle(self) -> bytes:
        """Return the mesh's root certificates as PEM."""
        ...


def _always() -> bool:
    return True


class PodSecrets:
    """Writer of the Secrets of the control plane in namespace `home`.

    `namespaces` limits the searched namespaces; empty means all. The writer is idle until `wanted` returns
    True, so that clusters without such Secrets need not grant permissions for them.

    `leads` is None for the only server of a mesh. Of several servers each gives Secrets, and has its Pods own
    them. The one that leads renews and removes all Secrets.
    """

    def __init__(
        self,
        api: Api,
        home: str,
        proxies: Proxies,
        clock: Callable[[], datetime],
        wanted: Callable[[], bool],
        namespaces: tuple[str, ...] = (),
        leads: Callable[[], bool] | None = None,
    ) -> None:
        self._api, self._home, self._proxies, self._clock = api, home, proxies, clock
        self._wanted, self._leads = wanted, leads or _always
        self._is_alone = leads is None
        self._namespaces: tuple[str | None, ...] = namespaces or (None,)
        self._created: set[tuple[str, str]] = set()
        self._changed = asyncio.Event()
        self._failures = 0
        self.error = ""

    async def uuid_for(self, namespace: str, annotated: str | None) -> ProxyUuid:
        """Return the UUID of a Pod under review. Raises KubeError.

        The Pod keeps its own UUID only if its Secret was created a moment ago, because API servers may review
        a Pod twice, and by another server of the mesh. Any other Pod with a UUID is a copy, for example of a
        manifest, and gets a new UUID.
        """
        if annotated is None:
            return ProxyUuid(str(uuid.uuid4()))
        if (namespace, annotated) in self._created or await self._is_new_elsewhere(namespace, annotated):
            return ProxyUuid(annotated)
        return ProxyUuid(str(uuid.uuid4()))

    async def _is_new_elsewhere(self, namespace: str, annotated: str) -> bool:
        """Return whether another server has created the Secret of this UUID a moment ago."""
        if self._is_alone or not is_dns_label(annotated):
            return False
        states = await self._list(namespace, f"{PROXY_UUID_LABEL}={annotated}")
        young = [state for state in states if is_young(state, self._clock())]
        self._created.update((namespace, state.name.uuid) for state in young)
        return bool(young)

    async def give(self, name: ProxyName) -> None:
        """Create the Secret of a Pod that is about to be created, once.

        Raises CertificateError or KubeError.
        """
        if (name.namespace, name.uuid) in self._created:
            return
        certificate = await asyncio.to_thread(self._proxies.issue_for, name)
        body = document(certificate, self._proxies.trust_bundle(), self._home, self._clock())
        try:
            await self._api.create(SECRETS, name.namespace, body)
        except BaseException:
            await self._revoke(certificate.serial, "its Secret was not written")
            raise
        self._created.add((name.namespace, name.uuid))
        _log.info("pod certificate issued", proxy=str(name), serial=certificate.serial)
        self._changed.set()

    def look(self) -> None:
        """Check the proxies' Secrets now, because the roots or the configuration have changed."""
        self._changed.set()

    def remarks(self) -> Iterator[str]:
        """Yield a sentence about the failed update of proxies' Secrets, if any, for the health page."""
        if self.error:
            yield f"cannot update the Secrets of pods: {self.error}"

    def works(self) -> Iterator[tuple[str, Coroutine[object, object, None]]]:
        """Yield the writer's task, with a name; it runs as long as the server."""
        yield "pods' Secrets", self._keeping()

    async def _keeping(self) -> None:
        """Keep the Secrets of Pods right until cancelled. A failure is logged once and repeated."""
        while True:
            self._changed.clear()
            if not self._wanted() or not (self._leads() or self._created):
                await self._changed.wait()
                continue
            try:
                young = await self._round()
            except (KubeError, CertificateError) as error:
                self._failures += 1
                self._log_error(str(error))
                await asyncio.sleep(rest(self._failures))
                continue
            self._failures, self.error = 0, ""
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SOON if young else LOOK_SECONDS):
                    await self._changed.wait()

    async def _round(self) -> bool:
        """Do the next step of every Secret. Return True if some have no Pod yet, and need a check soon."""
        before, young, wrong = set(self._created), False, list[KubeError | CertificateError]()
        states = [state for namespace in self._namespaces for state in await self._list(namespace)]
        for held in states:
            place = held.name.namespace, held.name.uuid
            before.discard(place)
            if held.owned:  # by this server, or by another one
                self._created.discard(place)
            if not self._leads() and place not in self._created:
                continue
            try:
                young |= await self._mended(held)
            except (KubeError, CertificateError) as error:
                wrong.append(error)  # only this Secret failed; the others continue
        self._created -= before  # the Secret is deleted: a Pod with its UUID is a copy now
        if wrong:
            raise wrong[0]
        return young

    async def _mended(self, secret_state: PodSecretState) -> bool:
        name = secret_state.name
        pod = None if secret_state.owned else await self._pod(name)
        roots, now = self._proxies.trust_bundle(), self._clock()
        match step(secret_state, has_pod=pod is not None, roots=roots, now=now):
            case Step.OWN if pod is not None:
                await self._patch(name, owned_by(pod))
                self._created.discard((name.namespace, name.uuid))
            case Step.RENEW | Step.REMOVE if not self._leads():
                return False
            case Step.RENEW:
                anew = await asyncio.to_thread(self._proxies.issue_for, name)
                await self._patch(name, content(anew, roots, now))
                _log.info("pod certificate renewed", proxy=str(name), serial=anew.serial)
            case Step.REMOVE:
                await self._remove(secret_state)
            case _:
                return not secret_state.owned
        return False

    async def _list(self, namespace: str | None, *labels: str) -> tuple[PodSecretState, ...]:
        asked = urlencode({"labelSelector": ",".join((selector(self._home), *labels))})
        raw = await self._api.read(f"{SECRETS.path(namespace)}?{asked}", _METADATA)
        items = raw.get("items") or ()  # null for an empty list
        return tuple(state for state in map(PodSecretState.parse, items) if state is not None)

    async def _pod(self, name: ProxyName) -> Mapping[str, Any] | None:
        result = await self._api.list(PODS, name.namespace, labels=f"{PROXY_UUID_LABEL}={name.uuid}")
        return next(iter(result["items"]), None)

    async def _patch(self, name: ProxyName, patch: Mapping[str, Any]) -> None:
        try:
            await self._api.patch(SECRETS, name.namespace, secret_name(name.uuid), patch)
        except KubeError as error:
            if error.reason is not Reason.NOT_FOUND:  # deleted together with its Pod
                raise

    async def _remove(self, secret_state: PodSecretState) -> None:
        self._created.discard((secret_state.name.namespace, secret_state.name.uuid))
        await self._revoke(secret_state.serial, "its pod was never created")
        try:
            await self._api.delete(SECRETS, secret_state.name.namespace, secret_name(secret_state.name.uuid))
        except KubeError as error:
            if error.reason is not Reason.NOT_FOUND:
                raise
        _log.info("pod Secret deleted: its pod was never created", proxy=str(secret_state.name))

    async def _revoke(self, serial: str, why: str) -> None:
        try:
            await asyncio.to_thread(self._proxies.revoke, serial, why)
        except CertificateError as error:
            _log.warning(
                "certificate of a Pod that was never created cannot be revoked",
                serial=serial,
                error=str(error),
            )

    def _log_error(self, error: str) -> None:
        if error != self.error:
            _log.warning("pod Secrets cannot be maintained", error=error)
        self.error = error
