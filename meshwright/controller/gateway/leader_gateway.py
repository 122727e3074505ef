"""The gateway certificate of a mesh with several servers, written by the leader only."""

import asyncio
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

    async def reload(self) -> None:
        """Read the names of the written Secrets again, because another server may have written some."""

    async def run(self) -> None:
        """Control the Secret until cancelled."""


class LeaderRecord(Protocol):
    """A record that only the leader writes."""

    def lead(self, epoch: Epoch) -> None:
        """Begin a term: writes of former leaders are refused from now on. Call in a thread."""


@dataclass(frozen=True, slots=True)
class LeaderGateway:
    """Controller of the gateway's Secret that works only while this server leads.

    `names` is the record with the names of the written Secrets.
    """

    gateway: Gateway
    leadership: Leadership
    names: LeaderRecord

    @property
    def end(self) -> datetime | None:
        """Return the end of the certificate's validity, or `None` if this server has not seen one."""
        return self.gateway.end

    async def run(self) -> None:
        """Run the controller whenever this server leads, until cancelled."""
        await self.leadership.lead(self._lead)

    async def _lead(self, epoch: Epoch) -> None:
        await asyncio.to_thread(self.names.lead, epoch)
        await self.gateway.reload()
        await self.gateway.run()
