"""Client for CertificateRequests at the API server: created, watched until the outcome, and removed."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from datetime import datetime
from typing import Any, Final

import structlog

from certs.errors import IssuerError
from certs.issuers.cert_manager.requests import LABEL, OURS, REQUESTS, is_left_behind
from certs.issuers.cert_manager.responses import (
    PendingRequest,
    RefusedRequest,
    SignedCertificate,
    judged,
    unfit,
)
from certs.issuers.reference import CERT_MANAGER, IssuerReference
from meshwright.kube.api import Api
from meshwright.kube.errors import ApiError, KubeError, Nonsense, Reason
from meshwright.kube.resource import Raw, Resource
from meshwright.kube.streams import event

_GRANTS: Final = "docs/kubernetes/cert-manager.yaml grants it"
_REMOVING_SECONDS: Final = 5.0
_PAUSE_SECONDS: Final = 0.5
_LOOKS: Final = 2
_FINAL: Final = frozenset(
    {Reason.CONFIG, Reason.CREDENTIALS, Reason.FORBIDDEN, Reason.UNAUTHORIZED, Reason.NOT_SERVED}
)
"""Reasons for which another try within the same request would not help."""

_log = structlog.get_logger("certs.issuers.cert_manager.asking")


class _RemovedError(Exception):
    """Error for the deletion of a watched CertificateRequest."""


class CertificateRequestClient:
    """Client for CertificateRequests to one issuer in one namespace. One request takes at most `seconds`."""

    def __init__(self, api: Api, issuer: IssuerReference, namespace: str, seconds: float) -> None:
        self._api = api
        self._issuer = issuer
        self._namespace = namespace
        self._seconds = seconds

    async def signed(self, document: Raw) -> SignedCertificate:
        """Create a CertificateRequest, and return the signed certificate; the object is always removed.

        Raises IssuerError with the reason. The object's name is only in the log. With the name, the text of
        the error would differ each time, and each text would be reported as a new problem.
        """
        try:
            made = await self._api.create(REQUESTS, self._namespace, document)
        except KubeError as error:
            raise _unasked(error) from error
        except asyncio.CancelledError:
            # The object may exist, although its creation was not confirmed.
            await self._remove_unheard(document)
            raise
        name = _name(made)
        try:
            return await self._answered(name, made)
        except IssuerError as error:
            where = f"{self._namespace}/{name}"
            _log.debug("certificate request not signed", request=where, reason=str(error))
            raise
        finally:
            await self._remove(name)

    async def look(self, now: datetime) -> None:
        """Check that the issuer can sign, and remove requests left by a killed server.

        Raises IssuerError. Only cert-manager's own issuer kinds can be checked, not the kinds of other API
        groups.
        """
        await self._sweep(now)
        if not self._issuer.is_own:
            return
        namespaced = bool(self._issuer.is_namespaced)
        plural = f"{self._issuer.kind.lower()}s"
        resource = Resource(CERT_MANAGER, "v1", plural, self._issuer.kind, namespaced)
        where = self._namespace if namespaced else None
        try:
            result = await self._api.get(resource, where, self._issuer.name)
        except KubeError as error:
            raise _unasked(error) from error
        if why := unfit(result):
            place = f" in namespace {where}" if where else ""
            raise IssuerError(f"{self._issuer}{place} {why}")

    async def _answered(self, name: str, made: Raw) -> SignedCertificate:
        what = f"CertificateRequest in namespace {self._namespace} to {self._issuer}"
        why = PendingRequest().why
        try:
            async with asyncio.timeout(self._seconds), aclosing(self._states(name, made)) as states:
                async for state in states:
                    if isinstance(state, KubeError):
                        why = str(state)
                        continue
                    match judged(state):
                        case SignedCertificate() as found:
                            return found
                        case RefusedRequest(said):
                            raise IssuerError(f"{what}: {said}")
                        case PendingRequest(said):
                            why = said
        except TimeoutError:
            raise IssuerError(f"{what} was not signed within {self._seconds:g} s: {why}") from None
        except _RemovedError:
            raise IssuerError(f"{what} was deleted before it was signed") from None
        except KubeError as error:
            raise _unasked(error) from error
        raise AssertionError("states end by an error alone")

    async def _states(self, name: str, made: Raw) -> AsyncGenerator[Raw | KubeError, None]:
        """Yield the states of an object, and errors while reading them.

        After the end of a watch the object is listed, and watched again. Raises _RemovedError after its
        removal, and KubeError if another try would not help.
        """
        named = f"metadata.name={name}"
        yield made
        version = _version(made)
        while True:
            try:
                if not version:
                    listed = await self._api.list(REQUESTS, self._namespace, fields=named)
                    if not listed["items"]:
                        raise _RemovedError
                    yield listed["items"][0]
                    version = _version(listed)
                params = {"fieldSelector": named, "resourceVersion": version}
                async with aclosing(self._changes(params)) as changes:
                    async for change in changes:
                        yield change
            except KubeError as error:
                if error.reason in _FINAL:
                    raise
                yield error
            # List again after the end of a watch, because events may have been missed.
            version = ""
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _changes(self, params: Mapping[str, str]) -> AsyncGenerator[Raw, None]:
        """Yield the watched CertificateRequest at each change, until the watch ends.

        Raises _RemovedError, KubeError.
        """
        asked = {**params, "timeoutSeconds": str(int(self._seconds) + 1)}
        async with self._api.watch(REQUESTS, self._namespace, asked, self._seconds + 5) as batches:
            async for batch in batches:
                for kind, raw in map(event, batch):
                    match kind:
                        case "ADDED" | "MODIFIED":
                            yield raw
                        case "DELETED":
                            raise _RemovedError
                        case "ERROR":
                            name = REQUESTS.name
                            raise ApiError.from_status(
                                raw, verb="watch", resource=name, object_text=name, named=False
                            )
                        case _:
                            raise Nonsense(f"a watch of {REQUESTS} sent an event of another type")

    async def _remove_unheard(self, document: Raw) -> None:
        """Remove a CertificateRequest, found by its CSR, if the API server has not confirmed the creation."""
        for _ in range(_LOOKS):
            try:
                async with asyncio.timeout(_REMOVING_SECONDS):
                    listed = await self._api.list(REQUESTS, self._namespace, labels=f"{LABEL}={OURS}")
            except (KubeError, TimeoutError):
                return  # `look` removes it later
            for item in listed["items"]:
                if item["spec"]["request"] == document["spec"]["request"]:
                    await self._remove(_name(item))
                    return
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _remove(self, name: str) -> None:
        try:
            async with asyncio.timeout(_REMOVING_SECONDS):
                await self._api.delete(REQUESTS, self._namespace, name)
        except (KubeError, TimeoutError) as error:
            if isinstance(error, ApiError) and error.is_not_found:
                return
            text = str(error) or "no answer in time"
            where = f"{self._namespace}/{name}"
            _log.warning(
                "certificate request cannot be removed now; a later check removes it",
                request=where,
                reason=text,
            )

    async def _sweep(self, now: datetime) -> None:
        try:
            listed = await self._api.list(REQUESTS, self._namespace, labels=f"{LABEL}={OURS}")
        except KubeError as error:
            raise _unasked(error) from error
        left = [_name(item) for item in listed["items"] if is_left_behind(item, now)]
        for name in left:
            await self._remove(name)
        if left:
            _log.info("abandoned certificate requests removed", count=len(left))


def _unasked(error: KubeError) -> IssuerError:
    """Return an error of the API server as an IssuerError, with advice for the operator."""
    match error.reason:
        case Reason.NOT_SERVED:
            return IssuerError(
                f"{error}: the CustomResourceDefinitions of cert-manager are not installed in this cluster"
            )
        case Reason.FORBIDDEN if not (isinstance(error, ApiError) and error.is_of_one):
            return IssuerError(f"{error} ({_GRANTS})")
        case _:
            return IssuerError(str(error))


def _name(raw: Raw) -> str:
    """Return an object's name.

    Raises IssuerError without a name, because a removal without a name would remove all objects.
    """
    if not isinstance(result := _metadata(raw).get("name"), str) or not result:
        raise IssuerError(f"unexpected response of the API server: an object of {REQUESTS} has no name")
    return result


def _version(raw: Raw) -> str:
    return str(_metadata(raw).get("resourceVersion") or "")


def _metadata(raw: Raw) -> Mapping[str, Any]:
    result = raw.get("metadata")
    return result if isinstance(result, dict) else {}
