"""The cluster is told of a webhook, and told again whenever it has it otherwise."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import structlog

from meshwright.kube.api import Api
from meshwright.kube.builtin import VALIDATING
from meshwright.kube.errors import KubeError
from meshwright.kube.reflector.reflector import Reflector
from meshwright.kube.resource import Raw, Resource
from meshwright.kubernetes.admission.configuration import Configuration, home_of, is_as, names_of
from meshwright.kubernetes.admission.roots import believed, trusting

MANAGER: Final = "meshwright.dev/control-plane"
"""The field manager by whose name everything in the cluster is written."""

LOOK_SECONDS: Final = 60.0
"""How often it is looked at though nothing was heard: roots may be others, and who was refused asks again."""

REST_SECONDS: Final = 5.0
LONGEST_SECONDS: Final = 300.0
"""Between two repairs, at first and at the longest: two who want it otherwise do not keep each other busy."""

CALM_SECONDS: Final = 1200.0
"""After so long without a repair the next one is the first again."""

PATIENCE: Final = 3
"""How many repairs are made at the shortest distance, before each takes twice as long to come as the last."""

DISPUTED: Final = 6
"""After how many repairs it is said that somebody wants it otherwise."""

SETTLED: Final = timedelta(minutes=5)
"""How long after a start others have had the time to say that roots are theirs."""

_DISPUTED: Final = (
    "another client changes it repeatedly, for example another control plane or a deployment tool; set "
    "`webhook_register: no` if that client is to manage it"
)

_ANOTHERS: Final = (
    "{kind} {name} belongs to the control plane in namespace {home}, and a cluster has only one; if that "
    "control plane is gone, run `kubectl delete {resource} {name}`"
)

_log = structlog.get_logger("admission.registration")


@dataclass(frozen=True, slots=True)
class RegistrationStatus:
    """How it stands: whether the cluster has it as it should be, why not, and how often it was written.

    It is `disputed` if it was found otherwise again and again, and `another_s` if it is that of a control
    plane elsewhere, which is left alone.
    """

    is_right: bool = False
    error: str = ""
    writes: int = 0
    disputed: bool = False
    another_s: bool = False


class Registration:
    """Keeps one configuration of webhooks as `wanted` says; what others add to it stays.

    It is of `resource`, under the name that is wanted first; `what` is what it is called in words. `wanted`
    is asked each time, as roots change. Servers of the same mesh whose roots are others are trusted
    beside us (see admission.roots). An object that is gone is made anew; one of another mesh, whose control
    plane has another namespace as its own, stays: each would take it from the other in turn.
    """

    def __init__(
        self,
        api: Api,
        wanted: Callable[[], Configuration],
        clock: Callable[[], datetime],
        resource: Resource = VALIDATING,
        what: str = "webhook",
    ) -> None:
        self._api, self._wanted, self._resource, self.what = api, wanted, resource, what
        first = wanted()
        self._name: str = first["metadata"]["name"]
        self._webhooks = names_of(first)
        self._reflector: Reflector[Raw] = Reflector(
            api, resource, partial(_relevant, resource), clock, fields=f"metadata.name={self._name}"
        )
        self._clock, self._began = clock, clock()
        self._changed = asyncio.Event()
        self._version = ""
        self._written: object = None
        self._is_known = False
        self.state = RegistrationStatus()

    @property
    def watch_error(self) -> str:
        """Why what is known of it may be old, empty while it is current."""
        return self._reflector.figures.error

    @property
    def is_settled(self) -> bool:
        """Say whether the cluster has been told, or it is known why it cannot be: nothing is waited for."""
        return self.state.is_right or bool(self.state.error or self.watch_error)

    @property
    def trusted(self) -> bytes:
        """Return the roots (PEM) by which the cluster verifies the webhook, as far as is known here."""
        # Who may not look knows what it was when it was written.
        return believed(self._written if self.watch_error else self._found(), self._webhooks).pem

    def remarks(self) -> tuple[str, ...]:
        """Say what is not as it should be."""
        wrong = {
            f"the {self.what} is not registered": self.state.error,
            f"the {self.what}'s registration cannot be watched": self.watch_error,
            f"the {self.what}'s registration is disputed": _DISPUTED if self.state.disputed else "",
        }
        return tuple(f"{what}: {error}" for what, error in wrong.items() if error)

    def look(self) -> None:
        """Look at once whether it is as it should be: what is wanted is other."""
        self._changed.set()

    async def run(self) -> None:
        """Keep it right until cancelled; what the cluster does not allow is said once, and tried again."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._reflector.run(self._heard), name=f"{self._resource.plural} watch")
            group.create_task(self._keeping(), name=self._resource.plural)

    def _heard(self, _: object) -> None:
        self._is_known = True
        self._changed.set()

    async def _keeping(self) -> None:
        repairs, failures, wrote = 0, 0, float("-inf")
        now = asyncio.get_running_loop().time
        while True:
            await self._told(min(LOOK_SECONDS, rest(failures)) if failures else LOOK_SECONDS)
            if not self._is_known and not self.watch_error:
                continue  # it may be another's
            if now() - wrote > CALM_SECONDS:
                repairs = 0
                self.state = replace(self.state, disputed=False)
            found, settled = self._found(), self._clock() - self._began >= SETTLED
            wanted = trusting(self._wanted(), found, self._clock(), settled=settled)
            if self._is_another_s(home_of(found), home_of(dict(wanted))):
                failures += 1
                continue
            if is_as(found, dict(wanted)):
                self.state, failures = replace(self.state, is_right=True, error=""), 0
                continue
            if await self._write(wanted):
                repairs, wrote = repairs + 1, now()
                self.state = replace(self.state, disputed=repairs > DISPUTED)
            failures = failures + 1 if self.state.error else 0
            await asyncio.sleep(rest(repairs - PATIENCE))

    def _is_another_s(self, home: str, ours: str) -> bool:
        """Say whether what is there is another mesh's, and say so once."""
        is_it = bool(home and ours and home != ours)
        if is_it:
            kind, plural = self._resource.kind, self._resource.plural.removesuffix("s")
            error = _ANOTHERS.format(kind=kind, name=self._name, home=home, resource=plural)
            if error != self.state.error:
                _log.warning(f"{self.what} not registered", error=error)
            self.state = replace(self.state, is_right=False, error=error)
        self.state = replace(self.state, another_s=is_it)
        return is_it

    async def _told(self, seconds: float) -> None:
        """Return when something was heard of it, or it is time to look again."""
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return
        finally:
            self._changed.clear()

    def _found(self) -> object:
        item = self._reflector.items.get(("", self._name))
        return None if item is None else item.body

    async def _write(self, wanted: Configuration) -> bool:
        """Write it; say whether that changed anything."""
        try:
            found = await self._api.apply(self._resource, None, self._name, wanted, manager=MANAGER)
        except KubeError as error:
            if str(error) != self.state.error:
                _log.warning(f"{self.what} not registered", error=str(error))
            self.state = replace(self.state, is_right=False, error=str(error))
            return False
        self._written = found
        metadata = found.get("metadata")
        version = str(metadata.get("resourceVersion", "")) if isinstance(metadata, dict) else ""
        # Who may write and not look writes what is there already.
        if is_other := version != self._version:
            _log.info(f"{self.what} registered", again=bool(self._version))
            self.state = replace(self.state, writes=self.state.writes + 1)
        self._version = version
        self.state = replace(self.state, is_right=True, error="")
        return is_other


def rest(times: int) -> float:
    """Return how long to wait after the same has been done so many times."""
    return min(REST_SECONDS * 2.0 ** max(0, min(times, 16) - 1), LONGEST_SECONDS)


def _relevant(resource: Resource, found: Raw) -> Raw:
    """Return what is compared: not who wrote which field. In lists an object need not say what it is."""
    metadata = {name: found["metadata"].get(name) for name in ("name", "labels", "annotations")}
    kinds = {"apiVersion": resource.api_version, "kind": resource.kind}
    return {**kinds, "metadata": metadata, "webhooks": found.get("webhooks")}
