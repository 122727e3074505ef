"""The cluster is told of the webhook, and told again whenever it has it otherwise."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

import structlog

from admission.configuration import API_VERSION, KIND, NAME, Configuration, is_as
from kube.api import Api
from kube.errors import KubeError
from kube.reflector import Reflector
from kube.resource import Raw, Resource
from specs.manifest import split_api_version

MANAGER: Final = "meshwright.dev/control-plane"
"""The field manager by whose name everything in the cluster is written."""

RESOURCE: Final = Resource(
    *split_api_version(API_VERSION), "validatingwebhookconfigurations", KIND, namespaced=False
)

LOOK_SECONDS: Final = 60.0
"""How often it is looked at though nothing was heard: roots may be others, and who was refused asks again."""

REST_SECONDS: Final = 5.0
"""Between two repairs: two who want it otherwise do not keep each other busy."""

_log = structlog.get_logger("admission.registration")


@dataclass(frozen=True, slots=True)
class Registered:
    """How it stands: whether the cluster has it as it should be, why not, and how often it was written."""

    is_right: bool = False
    error: str = ""
    writes: int = 0


class Registration:
    """Keeps one ValidatingWebhookConfiguration as `wanted` says; what others add to it stays.

    `wanted` is asked each time, as roots change. An object that is gone is made anew.
    """

    def __init__(self, api: Api, wanted: Callable[[], Configuration], clock: Callable[[], datetime]) -> None:
        self._api, self._wanted = api, wanted
        self._reflector: Reflector[Raw] = Reflector(
            api, RESOURCE, _relevant, clock, fields=f"metadata.name={NAME}"
        )
        self._changed = asyncio.Event()
        self._version = ""
        self.state = Registered()

    @property
    def watch_error(self) -> str:
        """Why what is known of it may be old, empty while it is current."""
        return self._reflector.figures.error

    def remarks(self) -> tuple[str, ...]:
        """Say what is not as it should be."""
        wrong = {
            "the webhook is not registered": self.state.error,
            "the webhook's registration is not watched": self.watch_error,
        }
        return tuple(f"{what}: {error}" for what, error in wrong.items() if error)

    async def run(self) -> None:
        """Keep it right until cancelled; what the cluster does not allow is said once, and tried again."""
        async with asyncio.TaskGroup() as group:
            group.create_task(
                self._reflector.run(lambda _: self._changed.set()), name="webhook configuration watch"
            )
            group.create_task(self._keeping(), name="webhook configuration")

    async def _keeping(self) -> None:
        while True:
            await self._told()
            if not is_as(self._found(), dict(wanted := self._wanted())):
                await self._write(wanted)
                await asyncio.sleep(REST_SECONDS)
            else:
                self.state = replace(self.state, is_right=True, error="")

    async def _told(self) -> None:
        """Return when something was heard of it, or it is time to look again."""
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                await self._changed.wait()
        except TimeoutError:
            return
        finally:
            self._changed.clear()

    def _found(self) -> object:
        item = self._reflector.items.get(("", NAME))
        return None if item is None else item.body

    async def _write(self, wanted: Configuration) -> None:
        try:
            found = await self._api.apply(RESOURCE, None, NAME, wanted, manager=MANAGER)
        except KubeError as error:
            if str(error) != self.state.error:
                _log.warning("the webhook is not registered", error=str(error))
            self.state = replace(self.state, is_right=False, error=str(error))
            return
        metadata = found.get("metadata")
        version = str(metadata.get("resourceVersion", "")) if isinstance(metadata, dict) else ""
        if version != self._version:  # who may write and not look writes what is there already
            _log.info("the webhook was registered", again=bool(self._version))
            self.state = replace(self.state, writes=self.state.writes + 1)
        self._version = version
        self.state = replace(self.state, is_right=True, error="")


def _relevant(found: Raw) -> Raw:
    """Return what is compared: not who wrote which field. In lists an object need not say what it is."""
    metadata = {name: found["metadata"].get(name) for name in ("name", "labels")}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "webhooks": found.get("webhooks")}
