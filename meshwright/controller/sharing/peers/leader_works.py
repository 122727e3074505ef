"""Works of the leader that need the other servers: counts of proxies, and problems that proxies cause."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from meshwright.admin.replicas.counts import leader_counts, own_counts
from meshwright.admin.replicas.peers import PROGRESS, PULSE
from meshwright.admin.replicas.problems import of_others
from meshwright.admin.replicas.pulse import Pulse, decode_pulse
from meshwright.admin.replicas.views import decoded
from meshwright.controller.sharing.peers.client import PeerClient
from meshwright.delivery.proxies.status import ProxyStatus
from meshwright.mesh.problems.problem import Problems
from meshwright.records.contract import Epoch
from meshwright.replicas.leadership import Leadership

EVERY_SECONDS: Final = 2.0
"""Seconds between two rounds of questions of the leader."""


@dataclass
class LeaderWorks:
    """The leader's knowledge of the proxies of all servers. Without leadership there is none.

    `say` replaces the problems that the proxies of other servers cause, for status and Events. `own` returns
    those that the proxies of this server cause.
    """

    client: PeerClient
    leadership: Leadership
    say: Callable[[Problems], None]
    own: Callable[[], Problems]
    every: float = EVERY_SECONDS
    _pulses: dict[str, Pulse] = field(default_factory=dict)
    _asked: bool = False

    def works(self) -> Iterator[tuple[str, Coroutine[object, object, None]]]:
        """Yield the names and coroutines of the tasks."""
        yield "proxies of all servers", self.leadership.lead(self._rounds)

    def counts(
        self, own: Mapping[str, int], statuses: Callable[[], tuple[ProxyStatus, ...]]
    ) -> dict[str, int]:
        """Return the numbers of proxies by state to measure; `own` are those of this server's registry."""
        if not self.leadership.epoch or not self._asked:
            return own_counts(own)
        return leader_counts(statuses(), self._pulses.values())

    async def _rounds(self, _epoch: Epoch) -> None:
        try:
            while True:
                await self.look()
                await asyncio.sleep(self.every)
        finally:
            self._pulses, self._asked = {}, False
            self.say(())

    async def look(self) -> None:
        """Ask all other servers once. A server without an answer keeps its last one while it is here."""
        answers = await self.client.ask(PULSE)
        pulses, silent = decoded(answers, decode_pulse)
        kept = {name: self._pulses[name] for name in silent if name in self._pulses}
        self._pulses, self._asked = {**kept, **pulses}, True
        others = (problem for pulse in self._pulses.values() for problem in pulse.problems)
        self.say(of_others(self.own(), others))


async def ask_progress(client: PeerClient) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """Return the answers of the other servers about their rollouts, and the servers without an answer."""
    answers = await client.ask(PROGRESS)
    fine = {name: answer.content for name, answer in answers.answers.items() if answer.is_fine}
    return fine, tuple(sorted({*answers.answers, *answers.silent} - fine.keys()))
