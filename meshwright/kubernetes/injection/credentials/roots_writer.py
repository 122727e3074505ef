"""Writer of the mesh's roots: a ConfigMap in each namespace with sidecars, created, watched and repaired."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

import structlog

from certs.keys.bundle import TrustBundle
from meshwright.kube.api import Api
from meshwright.kube.builtin import CONFIG_MAPS
from meshwright.kube.errors import ApiError, KubeError, Reason
from meshwright.kube.reflector.reflector import Reflector
from meshwright.kubernetes.admission.registration import (
    CALM_SECONDS,
    DISPUTED,
    LOOK_SECONDS,
    MANAGER,
    PATIENCE,
    rest,
)
from meshwright.kubernetes.injection.configuration.configuration import InjectionConfig
from meshwright.kubernetes.injection.credentials.pod_roots import (
    ConfigMapRoots,
    ConfigMapState,
    Reach,
    document,
    standing,
)
from meshwright.providers.merge import MergedObjects

PACE_SECONDS: Final = 0.02
"""Seconds between two writes, so that thousands of namespaces do not overload the API server."""

BATCH: Final = 25
"""Number of writes after which the remaining work is computed again, so that new namespaces wait less."""

_SHOWN: Final = 3
"""Number of namespaces that a remark names."""

_log = structlog.get_logger("injector.keeper")


@dataclass(frozen=True, slots=True)
class WritePause:
    """Time of the next write to a namespace, and the number of writes.

    The growing pause bounds a conflict with another writer.
    """

    until: float = 0.0
    times: int = 0

    def after(self, now: float) -> "WritePause":
        """Return the pause of a namespace after another write of its ConfigMap."""
        times = 1 if now - self.until > CALM_SECONDS else self.times + 1
        return WritePause(now + rest(times - PATIENCE), times)


@dataclass(frozen=True, slots=True)
class PodRootsState:
    """State of the ConfigMaps: the reason of a failed write, and the foreign and the disputed namespaces."""

    error: str = ""
    another_s: tuple[str, ...] = ()
    disputed: tuple[str, ...] = ()


class PodRoots:
    """Writer of the ConfigMap `name` in all namespaces of Pods with sidecars.

    `roots` (PEM) and `config` (the injector's configuration) are called each time. While `config` returns
    None, `reach` stays as given. `home` is the control plane's namespace. A ConfigMap of another owner under
    this name stays. So does our own ConfigMap in a namespace without sidecars, because another control plane
    may use the namespace by now. Of several servers only the one that `leads` writes: another
    one may be behind in a root rotation, and would take back roots.
    """

    def __init__(
        self,
        api: Api,
        name: str,
        home: str,
        reach: Reach,
        roots: Callable[[], bytes],
        merged: Callable[[], MergedObjects],
        clock: Callable[[], datetime],
        config: Callable[[], InjectionConfig | None] = lambda: None,
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        self.name, self._leads = name, leads
        self._config = config
        self._goes_by: InjectionConfig | None = None
        self._api, self._home, self._reach, self._roots, self._merged = api, home, reach, roots, merged
        self._reflector: Reflector[ConfigMapRoots] = Reflector(
            api, CONFIG_MAPS, ConfigMapRoots.parse, clock, fields=f"metadata.name={name}"
        )
        self._before = MergedObjects()
        self._rests: dict[str, WritePause] = {}
        self._going: set[str] = set()
        self._changed = asyncio.Event()
        self._is_other = True
        self._due, self._blocked, self._failures = 0.0, 0.0, 0
        self.state = PodRootsState()

    @property
    def watch_error(self) -> str:
        """Return the reason why the known ConfigMaps may be outdated, or an empty text if current."""
        return self._reflector.figures.error

    @property
    def error(self) -> str:
        """Return why some ConfigMaps of roots may be wrong or outdated, or an empty text."""
        return self.state.error or self.watch_error

    @property
    def trusted(self) -> bytes | None:
        """Return the roots (PEM) that every joining Pod trusts, or None if no namespace needs the ConfigMap.

        Returns an empty value if the ConfigMaps are unknown. ConfigMaps of other owners are not counted.
        """
        if not self._reflector.listed.is_set() or self.watch_error:
            return b"" if self._reach.names else None
        result = [self._read_config_map(item) for item in self._reach.names - self._going]
        ours = [roots for roots in result if roots is None or roots.home == self._home]
        texts = {"" if roots is None else roots.roots for roots in ours}
        if not texts:
            return None
        try:
            bundles = [TrustBundle.from_pems([text.encode("ascii")]) for text in sorted(texts)]
        except ValueError:  # until the ConfigMap is repaired
            return b""
        everywhere = set.intersection(*(set(bundle.fingerprints) for bundle in bundles))
        return bundles[0].among(everywhere).pem

    def remarks(self) -> tuple[str, ...]:
        """Return a sentence for each fault of the ConfigMaps of roots, for the health page."""
        of, asked = f"ConfigMap {self.name}", self._requested_name
        hint = f"; run `kubectl delete configmap {self.name}` there, and the control plane creates its own"
        wrong = {
            f"cannot write {of}": self.state.error,
            f"cannot watch {of}": self.watch_error,
            f"{of} has other roots than the mesh and belongs to someone else in": _some(
                self.state.another_s, hint
            ),
            f"the control plane writes {of}, but injected pods use": asked if asked != self.name else "",
            f"another program repeatedly changes {of} in": _some(self.state.disputed),
        }
        return tuple(f"{what}: {text}" for what, text in wrong.items() if text)

    @property
    def _requested_name(self) -> str:
        """Return the name of the ConfigMap of roots that injected Pods use."""
        config = self._config()
        return self.name if config is None else config.joining.roots_config_map

    def look(self) -> None:
        """Check the ConfigMaps of all namespaces now, because the roots have changed."""
        self._is_other = True
        self._changed.set()

    def noticed(self) -> None:
        """Schedule a look at changed objects of the mesh, which may change the namespaces with sidecars."""
        self._changed.set()

    def works(self) -> Iterator[tuple[str, Coroutine[object, object, None]]]:
        """Yield the writer's tasks, with their names; they run as long as the server."""
        yield "pods' roots watch", self._reflector.run(self._note_change)
        yield "pods' roots", self._keeping()

    def _note_change(self, _: object) -> None:
        self.look()

    async def _keeping(self) -> None:
        """Write missing and wrong ConfigMaps until cancelled. A failed write is logged once and repeated."""
        now = asyncio.get_running_loop().time
        await self._reflector.listed.wait()
        while True:
            moved = self._follow()
            if now() >= self._blocked and (moved or self._is_other or now() >= self._due):
                self._is_other = False
                await self._round(now)
            due = self._blocked if self._is_other else max(self._due, self._blocked)
            await self._wait_for_change(min(due - now(), LOOK_SECONDS))

    def _follow(self) -> bool:
        """Apply changes of the mesh's objects; return whether the namespaces with sidecars have changed."""
        merged, config, before = self._merged(), self._config(), self._reach.names
        if config is not None and config != self._goes_by:
            self._goes_by, self._reach, self._before = config, self._reach.by(config), MergedObjects()
        if merged is self._before:
            return False
        changes, self._before = merged.since(self._before), merged
        moved = self._reach.follow(changes) or self._reach.names != before
        self._is_other |= moved
        return moved

    async def _wait_for_change(self, seconds: float) -> None:
        """Wait for a change of roots, ConfigMaps or namespaces, or for `seconds` at most."""
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                await self._changed.wait()
        except TimeoutError:
            return
        self._changed.clear()

    async def _round(self, now: Callable[[], float]) -> None:
        """Write a batch of ConfigMaps of roots: missing ones first, then the wrong ones."""
        roots = self._roots()
        states = {
            name: standing(self._read_config_map(name), roots, self._home) for name in self._reach.names
        }
        wrong = sorted(
            (item for item in states if states[item] in (ConfigMapState.ABSENT, ConfigMapState.WRONG)),
            key=lambda item: (states[item] is ConfigMapState.WRONG, item),
        )
        self._rests = {item: kept for item, kept in self._rests.items() if item in states}
        self._going &= states.keys()
        if not self._leads():
            wrong = []
        due = [item for item in wrong if self._rest(item).until <= now()]
        error = "" if due else self.state.error if wrong else ""
        for item in due[:BATCH]:
            text, goes_on = await self._write(item, now)
            error = text or error
            if not goes_on:
                break
            await asyncio.sleep(PACE_SECONDS)
        rests = [self._rest(item).until for item in wrong]
        self._due = now() if len(due) > BATCH else min(rests, default=now() + LOOK_SECONDS)
        self.state = PodRootsState(
            error,
            tuple(sorted(item for item in states if states[item] is ConfigMapState.ANOTHER_S)),
            tuple(sorted(item for item in states if self._rest(item).times > DISPUTED)),
        )

    async def _write(self, namespace: str, now: Callable[[], float]) -> tuple[str, bool]:
        """Write one ConfigMap; return the fault, and whether a write elsewhere may succeed.

        A namespace that is being deleted, and a ConfigMap of another owner, are not faults.
        """
        self._rests[namespace] = self._rest(namespace).after(now())
        body = document(self.name, self._roots(), self._home)
        is_ours = self._read_config_map(namespace) is not None  # otherwise another owner may be creating one
        try:
            await self._api.apply(CONFIG_MAPS, namespace, self.name, body, manager=MANAGER, force=is_ours)
        except KubeError as error:
            if error.reason in (Reason.NOT_FOUND, Reason.CONFLICT):
                self._going.add(namespace)
                return "", True  # the watch reports both
            self._log_error(str(error))
            if isinstance(error, ApiError) and error.is_of_one:
                return str(error), True
            self._failures += 1
            self._blocked = now() + rest(self._failures)
            return str(error), False
        self._failures = 0
        self._going.discard(namespace)
        _log.info("roots ConfigMap written", namespace=namespace, again=is_ours)
        return "", True

    def _log_error(self, error: str) -> None:
        if error != self.state.error:
            _log.warning("roots ConfigMaps cannot be written", error=error)
            self.state = replace(self.state, error=error)

    def _rest(self, namespace: str) -> WritePause:
        return self._rests.get(namespace, WritePause())

    def _read_config_map(self, namespace: str) -> ConfigMapRoots | None:
        item = self._reflector.items.get((namespace, self.name))
        return None if item is None else item.body


def _some(namespaces: tuple[str, ...], hint: str = "") -> str:
    """Return the names of some namespaces as text, with `hint` and the number of the others."""
    if not namespaces:
        return ""
    more = len(namespaces) - _SHOWN
    return f"{', '.join(namespaces[:_SHOWN])}{f' and {more} more' if more > 0 else ''}{hint}"
