"""The injection webhook as an HTTP path: answers within the time limit, each of them counted."""

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import structlog
from aiohttp import web

from certs.errors import CertificateError
from meshwright.kube.errors import KubeError
from meshwright.kubernetes.admission.review import (
    API_VERSION,
    KIND,
    BadReviewError,
    Operation,
    Review,
    parse_review,
)
from meshwright.kubernetes.admission.server import json_of, patience
from meshwright.kubernetes.admission.turns import FullError, Turns
from meshwright.kubernetes.injection.configuration.configuration import Identity, InjectionConfig
from meshwright.kubernetes.injection.configuration.current import CurrentConfig
from meshwright.kubernetes.injection.credentials.secret_writer import PodSecrets
from meshwright.kubernetes.injection.pod_injection import InjectionInputs
from meshwright.kubernetes.injection.webhook.lookup import Lookup, NotShownError
from meshwright.kubernetes.injection.webhook.registration import PATH, SECONDS
from meshwright.kubernetes.injection.webhook.review import Answer, Cause, Result, answer, response
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.kinds import POD
from meshwright.sidecars.contract.driver import SidecarDriver
from meshwright.sidecars.injection.names import PROXY_UUID_LABEL

_JSON: Final = "application/json"
_AGAIN: Final = "the controller of the pod tries again"

Told = Callable[[str, str, float], None]
"""Callback with the outcome of each Pod, the rule or cause, and the seconds that the review took."""

_log = structlog.get_logger("injector.server")


class Injection:
    """Reviews of Pods; a thread patches one Pod at a time.

    Clients take turns in the thread, and the work for a Pod stops when its client stops waiting
    (`meshwright.kubernetes.admission.turns`). `mesh_config` is called each time. `followers` are called after
    a change of the configuration.
    """

    def __init__(
        self,
        configured: CurrentConfig,
        lookup: Lookup,
        drivers: Mapping[str, SidecarDriver],
        environment: Mapping[str, str],
        mesh_config: Callable[[], MeshConfig],
        record_review: Told,
        secrets: PodSecrets,
        followers: Sequence[Callable[[], None]] = (),
    ) -> None:
        self._configured, self._lookup = configured, lookup
        self._drivers, self._environment = drivers, environment
        self._mesh_config, self._record_review = mesh_config, record_review
        self._secrets = secrets
        self._turns = Turns("injection")
        self._followers = followers

    @property
    def config(self) -> InjectionConfig | None:
        """Return the applied configuration of the injector, or None before the first valid one."""
        return self._configured.config

    @property
    def mesh(self) -> str | None:
        """Return the mesh's name in the injector's configuration (empty if unset), or None without one."""
        return None if self.config is None else self.config.mesh

    @property
    def waiting(self) -> int:
        """Return the number of Pod reviews that wait for the injection thread or use the thread."""
        return self._turns.waiting

    def remarks(self) -> Iterator[str]:
        """Yield a sentence for each fault of injection, for the health page."""
        configured = self._configured
        if configured.error:
            kept = (
                "the last good one stays in force"
                if configured.config
                else "pods that must have a sidecar cannot be created"
            )
            yield f"the injection configuration is invalid, {kept}: {configured.error}"
        elif configured.stale:
            yield f"the injection configuration may be out of date: {configured.stale}"
        yield from self._secrets.remarks()

    def look(self) -> None:
        """Check the proxies' Secrets now, after a change of roots or of the injector's configuration."""
        self._secrets.look()

    def add_to(self, app: web.Application) -> None:
        """Add the URL path of the injection webhook to an HTTP application."""
        app.router.add_post(PATH, self._review)
        app.on_cleanup.append(self._ended)

    async def _ended(self, _: web.Application) -> None:
        self._turns.close()

    async def first(self) -> None:
        """Read the injector's configuration for the first time, if possible."""
        await self._configured.first()

    def works(self, changed: Callable[[], None]) -> Iterator[tuple[str, Coroutine[object, object, None]]]:
        """Yield the tasks that run as long as the server, with their names.

        `changed` is called after each change of the configuration.
        """

        def taken() -> None:
            for item in (self.look, changed, *self._followers):
                item()

        if self._configured.is_one:
            yield "injection configuration", self._configured.following(taken)
        yield from self._secrets.works()

    async def _review(self, request: web.Request) -> web.Response:
        if request.content_type != _JSON:
            return web.Response(status=415, text=f"the Content-Type header must be {_JSON}\n")
        began = time.monotonic()
        try:
            question = parse_review(await json_of(request))
        except BadReviewError as error:
            return web.Response(status=400, text=f"{error}\n")
        output = await self._in_time(question, patience(request.query.get("timeout", ""), SECONDS))
        self._record_review(output.result, output.reason, time.monotonic() - began)
        _log.info(
            "pod reviewed",
            pod=f"{_metadata(question, 'namespace')}/{_metadata(question, 'name')}",
            result=str(output.result),
            reason=output.words,
        )
        # Serialising the patch of a large Pod takes time, so a thread does it and the event loop stays free.
        text = await asyncio.to_thread(_written, question.uid, output)
        return web.Response(text=text, content_type=_JSON)

    async def _in_time(self, question: Review, seconds: float) -> Answer:
        """Return the answer to a review before the API server's timeout; any failure refuses the Pod."""
        try:
            async with asyncio.timeout(seconds):
                return await self._answered(question, seconds)
        except TimeoutError:
            return Answer(
                Result.REFUSED, f"the injector did not finish within {seconds:g} s; {_AGAIN}", Cause.LATE
            )
        except FullError:
            text = f"too many pods of {question.client or 'one client'} wait for their sidecars; {_AGAIN}"
            return Answer(Result.REFUSED, text, Cause.LATE)
        except Exception as error:  # noqa: BLE001 - any error is logged, and the Pod is refused
            _log.error("pod review failed", error=f"{type(error).__name__}: {error}")
            text = f"the injector failed with an internal error (see the log of the control plane); {_AGAIN}"
            return Answer(Result.REFUSED, text, Cause.FAULT)

    async def _answered(self, question: Review, seconds: float) -> Answer:
        document, config = question.document, self.config
        if document is None or question.operation is not Operation.CREATE or question.kind != POD:
            return Answer(Result.SKIPPED, "only new pods get sidecars", Cause.NO_POD)
        if config is None:
            text = f"a valid injection configuration is missing: {self._configured.error}"
            return Answer(Result.REFUSED, text, Cause.NO_CONFIGURATION)
        try:
            namespace = await self._lookup.namespace(_metadata(question, "namespace"), seconds / 2)
        except (KubeError, TimeoutError, NotShownError) as error:
            text = str(error) or "the API server does not answer"
            text = f"cannot read the namespace of the pod: {text}"
            return Answer(Result.REFUSED, text, Cause.NO_NAMESPACE)
        version = await self._lookup.version(seconds / 4)
        known = InjectionInputs(
            config, self._drivers, self._mesh_config(), self._environment, version=version
        )
        if config.identity is Identity.SECRET:
            own = _labels(question).get(PROXY_UUID_LABEL)
            try:
                known = replace(known, uuid=await self._secrets.uuid_for(namespace.name, own))
            except KubeError as error:
                text = f"identity is secret, but the Secrets of pods cannot be read: {error}"
                return Answer(Result.REFUSED, text, Cause.NO_SECRET)
        answered = await self._turns.run(question.client, partial(answer, known, namespace, document))
        return answered if answered.needs is None or question.dry_run else await self._with_secret(answered)

    async def _with_secret(self, answered: Answer) -> Answer:
        """Create the Secret of the Pod's proxy certificate, if needed; after a failure the Pod is refused."""
        assert answered.needs is not None  # noqa: S101 - the caller has checked
        try:
            await self._secrets.give(answered.needs)
        except (CertificateError, KubeError) as error:
            text = f"identity is secret, but the Secret of the pod cannot be created: {error}"
            return Answer(Result.REFUSED, text, Cause.NO_SECRET)
        return answered


def _written(uid: str, decision: Answer) -> str:
    """Return the AdmissionReview with the answer for a Pod, as JSON."""
    return json.dumps({"apiVersion": API_VERSION, "kind": KIND, "response": response(uid, decision)})


def _metadata(question: Review, field: str) -> str:
    metadata = (question.document or {}).get("metadata")
    return str(metadata.get(field, "")) if isinstance(metadata, Mapping) else ""


def _labels(question: Review) -> Mapping[str, str]:
    metadata = (question.document or {}).get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, Mapping) else None
    return labels if isinstance(labels, Mapping) else {}
