"""Injection as an API server meets it: a path of the webhook, the namespace looked up, the configuration.

Imported where sidecars are injected, and nowhere else.
"""

import asyncio
import contextlib
import re
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import structlog
from aiohttp import web

from admission.review import API_VERSION, KIND, BadReviewError, Operation, Review, asked
from admission.server import json_of, patience
from controller.cluster import Cluster
from controller.injection_file import InjectionFile
from injector.configuration import InjectionConfig
from injector.injecting import Known
from injector.registration import PATH, SECONDS
from injector.reviewing import Answer, Result, answer, response
from kube.errors import KubeError
from kube.resource import Resource
from mesh.config import MeshConfig
from mesh.kinds import NAMESPACE, POD
from mesh.names import Namespace
from mesh.objects import NamespaceObject, ObjectKey
from mesh.origins import InCluster
from providers.merge import Merged
from sidecars.contract.driver import SidecarDriver
from specs.shown import read_shown

RESOURCE: Final = Resource("", "v1", "namespaces", NAMESPACE.name, namespaced=False)
_JSON: Final = "application/json"
_AGAIN: Final = "who makes the pod tries again"
_NUMBER: Final = re.compile(r"[0-9]+")

Told = Callable[[str, float], None]
"""Told of each pod what became of it, and how many seconds it took."""

_log = structlog.get_logger("controller.injection")


class Injection:
    """Answers what API servers ask about pods; a pod is looked at in a thread of its own, one at a time.

    `mesh_config` and `merged` are asked each time. The API server says best what a namespace's labels are:
    they may have been written a moment before its first pod. Where it does not answer, what is known counts.
    """

    def __init__(
        self,
        cluster: Cluster,
        path: Path | None,
        drivers: Mapping[str, SidecarDriver],
        environment: Mapping[str, str],
        mesh_config: Callable[[], MeshConfig],
        merged: Callable[[], Merged],
        told: Told,
    ) -> None:
        self._cluster, self._drivers, self._environment = cluster, drivers, environment
        self._mesh_config, self._merged, self._told = mesh_config, merged, told
        self.file = InjectionFile(path, self._at_home)
        self._thread = ThreadPoolExecutor(1, "injection")
        self._served: tuple[int, int] | None = None

    @property
    def mesh(self) -> str | None:
        """The mesh's name, empty where it is not said, None while there is no configuration."""
        return None if self.file.config is None else self.file.config.mesh

    def remarks(self) -> Iterator[str]:
        """Yield what is not as it should be."""
        if self.file.error:
            kept = "the one before holds" if self.file.config else "no pod that is to have a sidecar is made"
            yield f"the injection configuration is wrong, {kept}: {self.file.error}"

    def add_to(self, app: web.Application) -> None:
        """Answer at the path of injection, too."""
        app.router.add_post(PATH, self._review)
        app.on_cleanup.append(self._ended)

    async def _ended(self, _: web.Application) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    def works(self, changed: Callable[[], None]) -> Iterator[tuple[str, Coroutine[object, object, None]]]:
        """Yield what runs as long as the server does, by name; `changed` is told of another configuration."""
        if self.file.is_one:
            yield "injection configuration", self.file.following(changed)

    async def _review(self, request: web.Request) -> web.Response:
        if request.content_type != _JSON:
            return web.Response(status=415, text=f"Content-Type must be {_JSON}\n")
        began = time.monotonic()
        try:
            question = asked(await json_of(request))
        except BadReviewError as error:
            return web.Response(status=400, text=f"{error}\n")
        said = await self._in_time(question, patience(request.query.get("timeout", ""), SECONDS))
        self._told(said.result, time.monotonic() - began)
        _log.info(
            "pod reviewed",
            pod=f"{_metadata(question, 'namespace')}/{_metadata(question, 'name')}",
            result=str(said.result),
            reason=said.words,
        )
        body = {"apiVersion": API_VERSION, "kind": KIND, "response": response(question.uid, said)}
        return web.json_response(body)

    async def _in_time(self, question: Review, seconds: float) -> Answer:
        """Return an answer while the API server still waits for it; what fails refuses the pod."""
        try:
            async with asyncio.timeout(seconds):
                return await self._answered(question, seconds)
        except TimeoutError:
            return Answer(Result.REFUSED, f"there was no answer within {seconds:g} s: {_AGAIN}")
        except Exception as error:  # noqa: BLE001 - whatever it was, it is said, and the pod is not made
            _log.error("a pod was not reviewed", error=f"{type(error).__name__}: {error}")
            return Answer(Result.REFUSED, f"the control plane has failed, and its log says how: {_AGAIN}")

    async def _answered(self, question: Review, seconds: float) -> Answer:
        document, config = question.document, self.file.config
        if document is None or question.operation is not Operation.CREATE or question.kind != POD:
            return Answer(Result.SKIPPED, "only pods that are made are given sidecars")
        if config is None:
            return Answer(Result.REFUSED, f"the injector has no configuration: {self.file.error}")
        try:
            namespace = await self._namespace(_metadata(question, "namespace"), seconds)
        except (KubeError, TimeoutError) as error:
            said = str(error) or "the API server does not answer"
            return Answer(Result.REFUSED, f"its namespace cannot be looked up: {said}")
        version = await self._version(seconds)
        known = Known(config, self._drivers, self._mesh_config(), self._environment, version=version)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, answer, known, namespace, document)

    async def _namespace(self, name: str, seconds: float) -> NamespaceObject:
        """Return a namespace with its labels; raise KubeError where nothing is known of it."""
        try:
            async with asyncio.timeout(seconds / 2):
                found = await self._cluster.api.list(RESOURCE, fields=f"metadata.name={name}")
        except (KubeError, TimeoutError):
            known = self._merged().in_force(ObjectKey(NAMESPACE, Namespace(""), name))
            if known is None or not isinstance(known.value, NamespaceObject):
                raise
            return known.value
        origin = InCluster(self._cluster.api.name, "")
        for raw in found["items"]:
            whole = {**raw, "apiVersion": RESOURCE.api_version, "kind": RESOURCE.kind}
            for _, value in read_shown(whole, origin).objects:
                if isinstance(value, NamespaceObject):
                    return value
        return NamespaceObject(Namespace(name))

    async def _version(self, seconds: float) -> tuple[int, int] | None:
        """Return the API server's version, asked once; None while it does not say."""
        if self._served is None:
            with contextlib.suppress(KubeError, TimeoutError):
                async with asyncio.timeout(seconds / 4):
                    self._served = minor_version(await self._cluster.api.read("/version"))
        return self._served

    def _at_home(self, read: InjectionConfig) -> InjectionConfig:
        """Return a configuration with our own namespace: a control plane knows where it is."""
        return replace(read, control_plane_namespace=Namespace(self._cluster.home))


def minor_version(said: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return the version in an API server's answer, such as (1, 29); providers add signs to its numbers."""
    found = [_NUMBER.match(str(said.get(name, ""))) for name in ("major", "minor")]
    match found:
        case [re.Match() as major, re.Match() as minor]:
            return int(major[0]), int(minor[0])
        case _:
            return None


def _metadata(question: Review, field: str) -> str:
    metadata = (question.document or {}).get("metadata")
    return str(metadata.get(field, "")) if isinstance(metadata, Mapping) else ""
