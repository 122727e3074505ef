"""The gateway certificate of a mesh with several servers, written by the leader only."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from meshwright.records.contract import Epoch
from meshwright.replicas.leadership import Leadership


class Gateway(Protocol):
    """Controller of the gateway's Secret, for example `meshwright.controller.gateway.certificate`."""

    @property
    def end(self) -> datetime | None:
        """Return the end of the certificate's validity, or `None` without one."""

    async def run(self) -> None:
        """Control the Secret until cancelled."""


@dataclass(frozen=True, slots=True)
class LeaderGateway:
    """Controller of the gateway's Secret that works only while this server leads."""

    gateway: Gateway
    leadership: Leadership

    @property
    def end(self) -> datetime | None:
        """Return the end of the certificate's validity, or `None` if this server has not seen one."""
        return self.gateway.end

    async def run(self) -> None:
        """Run the controller whenever this server leads, until cancelled."""
        await self.leadership.lead(_in_each_term(self.gateway.run))


def _in_each_term(
    work: Callable[[], Coroutine[None, None, None]],
) -> Callable[[Epoch], Coroutine[None, None, None]]:
    async def lead(epoch: Epoch) -> None:
        del epoch  # the API server compares the writes of the Secret
        await work()

    return lead
