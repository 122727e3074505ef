"""The injector's configuration in a ConfigMap: watched, and read when changes pause."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Final, Protocol

from meshwright.kube.api import Api
from meshwright.kube.builtin import CONFIG_MAPS
from meshwright.kube.errors import KubeError
from meshwright.kube.reflector.reflector import Reflector
from meshwright.kube.resource import Raw
from meshwright.kubernetes.injection.configuration.configuration import ConfigurationError
from meshwright.kubernetes.injection.configuration.current import CurrentConfig, ReadCounter
from meshwright.kubernetes.injection.configuration.place import ConfigMapKey

QUIET_SECONDS: Final = 0.1
LONGEST_SECONDS: Final = 1.0
"""Seconds without a change until the ConfigMap is read, and the longest delay if changes never pause."""

FIRST_SECONDS: Final = 5.0
"""Seconds for which a starting server waits for the configuration; afterwards it starts without one."""


class Owner(Protocol):
    """Reporter of faults to the owner of the ConfigMap, for example as Events about the ConfigMap."""

    def set_problem(self, metadata: Raw, error: str) -> None:
        """Record the fault in the ConfigMap for an Event; an empty text means no fault. Never waits."""
        ...

    async def run(self) -> None:
        """Report the recorded faults of the ConfigMap until cancelled."""
        ...


@dataclass(frozen=True, slots=True)
class _StoredConfigMap:
    """The used part of the ConfigMap: its UID, and the text under the key or None."""

    uid: str
    text: str | None
    metadata: Raw = field(compare=False)


_GONE: Final = _StoredConfigMap("", None, {})


class InjectionConfigMap(CurrentConfig):
    """A configuration in a ConfigMap. Without the ConfigMap, the last valid configuration stays in force.

    The same holds while the watch fails. `document_of` parses a text from a place into one document, and
    raises ConfigurationError.
    """

    def __init__(
        self,
        api: Api,
        place: ConfigMapKey,
        home: str,
        counted: ReadCounter,
        document_of: Callable[[str, str], object],
        clock: Callable[[], datetime],
        owner: Owner | None = None,
    ) -> None:
        super().__init__(home, counted)
        self._api = api
        self._place, self._document_of, self._owner = place, document_of, owner
        self._where = f"ConfigMap {place.namespace}/{place.name}"
        self.error = f"{self._where} has not been read yet"
        self._reflector: Reflector[_StoredConfigMap] = Reflector(
            api,
            CONFIG_MAPS,
            partial(_kept, place.key),
            clock,
            namespace=place.namespace,
            fields=f"metadata.name={place.name}",
        )
        self._changed_event = asyncio.Event()
        self._read_as: _StoredConfigMap | None = None

    @property
    def is_one(self) -> bool:
        """Return True, because a ConfigMap may change at any time."""
        return True

    @property
    def stale(self) -> str:
        """Return why the known content of the ConfigMap may be outdated, or an empty text."""
        error = self._reflector.figures.error
        return f"cannot watch {self._where}: {error}" if error else ""

    async def first(self) -> None:
        """Read the ConfigMap before the webhook is registered, because the registration depends on it."""
        namespace, name = self._place.namespace, self._place.name
        try:
            async with asyncio.timeout(FIRST_SECONDS):
                result = (await self._api.list(CONFIG_MAPS, namespace, fields=f"metadata.name={name}"))[
                    "items"
                ]
        except (KubeError, TimeoutError) as error:
            text = str(error) or "the API server does not answer"
            self.error = f"cannot read {self._where}: {text}"
        else:
            self._take_over(_kept(self._place.key, result[0]) if result else None)

    async def following(self, changed: Callable[[], None]) -> None:
        """Watch the ConfigMap until cancelled, and call `changed` after each reading."""
        async with asyncio.TaskGroup() as group:
            watch = self._reflector.run(lambda _: self._changed_event.set())
            group.create_task(watch, name="injection configuration watch")
            group.create_task(self._reading(changed), name="injection configuration reading")
            if self._owner is not None:
                group.create_task(self._owner.run(), name="injection configuration events")

    async def _reading(self, changed: Callable[[], None]) -> None:
        while True:
            await self._changed_event.wait()
            await self._paused()
            if self._look():
                changed()

    async def _paused(self) -> None:
        """Wait until the ConfigMap is unchanged for QUIET_SECONDS, at most LONGEST_SECONDS."""
        now = asyncio.get_running_loop().time
        end = now() + LONGEST_SECONDS
        while self._changed_event.is_set():
            self._changed_event.clear()
            try:
                async with asyncio.timeout(min(QUIET_SECONDS, max(0.0, end - now()))):
                    await self._changed_event.wait()
            except TimeoutError:
                return

    def _look(self) -> bool:
        """Read the ConfigMap if changed since the last reading; return whether it was read."""
        if not self._reflector.listed.is_set():
            self.error = self.stale or self.error
            return False
        item = self._reflector.items.get((self._place.namespace, self._place.name))
        return self._take_over(None if item is None else item.body)

    def _take_over(self, stored_config_map: _StoredConfigMap | None) -> bool:
        if (seen := stored_config_map or _GONE) == self._read_as:
            return False
        # Also a rejected form is remembered, so that the same fault is counted and logged only once.
        self._read_as = seen
        self._read(stored_config_map)
        return True

    def _read(self, stored_config_map: _StoredConfigMap | None) -> None:
        if stored_config_map is None:
            self.refuse(f"{self._where} does not exist")
            return
        if stored_config_map.text is None:
            self.refuse(f"{self._where} has no key {self._place.key} in its data")
        else:
            where = f"{self._where}, {self._place.key}"
            try:
                document = self._document_of(stored_config_map.text, where)
            except ConfigurationError as error:
                self.refuse(str(error))
            else:
                self.take(document, where)
        if self._owner is not None:
            self._owner.set_problem(stored_config_map.metadata, self.error)


def _kept(key: str, raw: Raw) -> _StoredConfigMap:
    metadata = raw["metadata"]
    text = (raw.get("data") or {}).get(key)
    named = {name: metadata.get(name) for name in ("name", "namespace", "uid", "resourceVersion")}
    return _StoredConfigMap(str(metadata.get("uid", "")), None if text is None else str(text), named)
