"""Reports of status and Events by the leader of several servers, in place of the holder of a Lease."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass

from meshwright.records.contract import Epoch
from meshwright.replicas.leadership import Leadership


@dataclass(frozen=True, slots=True)
class LeaderReports:
    """Implements `meshwright.kubernetes.status.reporter.ReportLeadership` by the leadership of the mesh."""

    leadership: Leadership

    async def run(self, lead: Callable[[], Coroutine[object, object, None]]) -> None:
        """Run `lead` whenever this server leads, until cancelled."""

        async def term(_epoch: Epoch) -> None:
            # Two leaders of a moment write equal reports by server-side apply.
            await lead()

        await self.leadership.lead(term)
