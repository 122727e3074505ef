"""Registration of a webhook in the cluster, repaired after every change by another client."""

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
"""Field manager of everything that the control plane writes into the cluster."""

LOOK_SECONDS: Final = 60.0
"""Seconds between two checks without an event.

Checks are needed because our roots may change, and because a refused write is retried.
"""

REST_SECONDS: Final = 5.0
LONGEST_SECONDS: Final = 300.0
"""Shortest and longest seconds between two repairs.

The pause grows, so that two clients with different wishes do not keep each other busy.
"""

CALM_SECONDS: Final = 1200.0
"""Seconds without a repair after which the next repair counts as the first."""

PATIENCE: Final = 3
"""Number of repairs at the start of a conflict that do not lengthen the pause; see `rest`."""

DISPUTED: Final = 6
"""Number of repairs beyond which the registration is reported as disputed."""

SETTLED: Final = timedelta(minutes=5)
"""Time after a start in which other servers may still claim their roots, so that none are removed."""

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
    """State of a registration in the cluster.

    `is_right`: the cluster has the desired configuration. `writes` is the number of writes that changed it.
    `disputed`: other clients changed it repeatedly. `another_s`: it belongs to another control plane, whose
    configuration is left alone.
    """

    is_right: bool = False
    error: str = ""
    writes: int = 0
    disputed: bool = False
    another_s: bool = False


class Registration:
    """Writer of one webhook configuration: keeps it equal to `wanted`, except fields of other clients.

    The configuration is a `resource` with the name of the first `wanted()`; `subject` is its name in
    messages. `wanted` is called each time, because roots change. Roots of other servers of the same mesh stay
    in the bundle (`meshwright.kubernetes.admission.roots`). A deleted configuration is created again. A
    configuration with another home namespace belongs to another control plane and stays, because otherwise
    the two control planes would overwrite each other for ever. Of several servers only the one that `leads`
    writes: another one may be behind in a root rotation, and would take back roots.
    """

    def __init__(
        self,
        api: Api,
        wanted: Callable[[], Configuration],
        clock: Callable[[], datetime],
        resource: Resource = VALIDATING,
        subject: str = "webhook",
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        self._leads = leads
        self._api, self._wanted, self._resource, self.subject = api, wanted, resource, subject
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
        """Return the reason why the known configuration may be outdated, or an empty text if current."""
        return self._reflector.figures.error

    @property
    def is_settled(self) -> bool:
        """Return whether the webhook is registered, or the reason is known why it cannot be registered."""
        return self.state.is_right or bool(self.state.error or self.watch_error) or not self._leads()

    @property
    def trusted(self) -> bytes:
        """Return the root certificates (PEM) with which API servers verify the webhook, as far as known."""
        # Without permission to watch, the last written configuration is the best knowledge.
        return believed(self._written if self.watch_error else self._read_configuration(), self._webhooks).pem

    def remarks(self) -> tuple[str, ...]:
        """Return a sentence for each fault of the webhook's registration, for the health page."""
        wrong = {
            f"the {self.subject} is not registered": self.state.error,
            f"the {self.subject}'s registration cannot be watched": self.watch_error,
            f"the {self.subject}'s registration is disputed": _DISPUTED if self.state.disputed else "",
        }
        return tuple(f"{what}: {error}" for what, error in wrong.items() if error)

    def look(self) -> None:
        """Check the webhook's registration at once, because the desired configuration has changed."""
        self._changed.set()

    async def run(self) -> None:
        """Keep the registration right until cancelled.

        A failed write is logged once for each new error, and is retried.
        """
        async with asyncio.TaskGroup() as group:
            group.create_task(self._reflector.run(self._note_change), name=f"{self._resource.plural} watch")
            group.create_task(self._keeping(), name=self._resource.plural)

    def _note_change(self, _: object) -> None:
        self._is_known = True
        self._changed.set()

    async def _keeping(self) -> None:
        repairs, failures, wrote = 0, 0, float("-inf")
        now = asyncio.get_running_loop().time
        while True:
            await self._wait_for_event(min(LOOK_SECONDS, rest(failures)) if failures else LOOK_SECONDS)
            if not self._is_known and not self.watch_error:
                continue  # the configuration in the cluster may belong to another control plane
            if now() - wrote > CALM_SECONDS:
                repairs = 0
                self.state = replace(self.state, disputed=False)
            result, settled = self._read_configuration(), self._clock() - self._began >= SETTLED
            wanted = trusting(self._wanted(), result, self._clock(), settled=settled)
            if self._is_another_s(home_of(result), home_of(dict(wanted))):
                failures += 1
                continue
            if is_as(result, dict(wanted)):
                self.state, failures = replace(self.state, is_right=True, error=""), 0
                continue
            if not self._leads():
                self.state = replace(self.state, is_right=False, error="")
                continue
            if await self._write(wanted):
                repairs, wrote = repairs + 1, now()
                self.state = replace(self.state, disputed=repairs > DISPUTED)
            failures = failures + 1 if self.state.error else 0
            await asyncio.sleep(rest(repairs - PATIENCE))

    def _is_another_s(self, home: str, ours: str) -> bool:
        """Return whether the configuration belongs to another mesh's control plane, and log it once."""
        is_it = bool(home and ours and home != ours)
        if is_it:
            kind, plural = self._resource.kind, self._resource.plural.removesuffix("s")
            error = _ANOTHERS.format(kind=kind, name=self._name, home=home, resource=plural)
            if error != self.state.error:
                _log.warning(f"{self.subject} not registered", error=error)
            self.state = replace(self.state, is_right=False, error=error)
        self.state = replace(self.state, another_s=is_it)
        return is_it

    async def _wait_for_event(self, seconds: float) -> None:
        """Wait for an event about the webhook configuration, or for `seconds` at most."""
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return
        finally:
            self._changed.clear()

    def _read_configuration(self) -> object:
        item = self._reflector.items.get(("", self._name))
        return None if item is None else item.body

    async def _write(self, wanted: Configuration) -> bool:
        """Apply the webhook configuration in the cluster, and return whether the stored object changed."""
        try:
            result = await self._api.apply(self._resource, None, self._name, wanted, manager=MANAGER)
        except KubeError as error:
            if str(error) != self.state.error:
                _log.warning(f"{self.subject} not registered", error=str(error))
            self.state = replace(self.state, is_right=False, error=str(error))
            return False
        self._written = result
        metadata = result.get("metadata")
        version = str(metadata.get("resourceVersion", "")) if isinstance(metadata, dict) else ""
        # Without permission to watch, the same content is written again, and the version shows that nothing
        # changed.
        if is_other := version != self._version:
            _log.info(f"{self.subject} registered", again=bool(self._version))
            self.state = replace(self.state, writes=self.state.writes + 1)
        self._version = version
        self.state = replace(self.state, is_right=True, error="")
        return is_other


def rest(times: int) -> float:
    """Return the seconds to wait after `times` repetitions of an action.

    From the second repetition on, REST_SECONDS doubles each time, up to LONGEST_SECONDS.
    """
    return min(REST_SECONDS * 2.0 ** max(0, min(times, 16) - 1), LONGEST_SECONDS)


def _relevant(resource: Resource, result: Raw) -> Raw:
    """Return the compared parts of a configuration, without `managedFields`.

    API version and kind come from `resource`, because objects in lists need not have them.
    """
    metadata = {name: result["metadata"].get(name) for name in ("name", "labels", "annotations")}
    kinds = {"apiVersion": resource.api_version, "kind": resource.kind}
    return {**kinds, "metadata": metadata, "webhooks": result.get("webhooks")}
