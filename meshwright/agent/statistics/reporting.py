"""Regular reports of the proxy's statistics to the control plane, at the interval in its answers."""

import asyncio
import random
import time
import uuid
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from meshwright.agent.envoy.admin import AdminUnreachable, EnvoyAdmin
from meshwright.agent.statistics.increments import NOTHING, since
from meshwright.agent.statistics.report import Reports
from meshwright.agent.statistics.report_client import ReportRefused
from meshwright.agent.statistics.statistics import STATS_PATH, read

FIRST_SECONDS: Final = 10.0
LEAST_SECONDS: Final = 5
MOST_SECONDS: Final = 3600
LONGEST_PAUSE: Final = 300.0
"""Longest pause in seconds after a failure or a refusal."""

Send = Callable[[bytes], Awaitable[int]]

_log = structlog.get_logger("agent.figures")


class StatisticsReporter:
    """Sends reports by `send`, which raises ReportRefused.

    A report without an answer is sent again. An unfit one is dropped, because it would block all later ones.
    """

    def __init__(
        self,
        admin: EnvoyAdmin,
        send: Send,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        dice: random.Random | None = None,
    ) -> None:
        self._admin = admin
        self._send = send
        self._monotonic = monotonic
        self._dice = dice or random.Random()  # noqa: S311 - it spreads calls, and hides nothing
        self._reports = Reports(uuid.uuid4().hex)
        self._seen = NOTHING
        self._at = monotonic()
        self._unanswered: bytes | None = None
        self._pause = FIRST_SECONDS
        self._why = ""

    async def run(self) -> None:
        """Send reports until cancelled; a random first pause spreads agents that start together."""
        pause = self._dice.uniform(0, FIRST_SECONDS)
        while True:
            await asyncio.sleep(pause)
            pause = await self.send_report()

    async def send_report(self) -> float:
        """Send one report; return the seconds until the next one. Failures are logged, not raised."""
        try:
            return await self._send_report()
        except Exception:  # noqa: BLE001 - logged, and tried again
            # Not raised, because a failed task would end the agent and with it Envoy.
            _log.exception("statistics report failed with an internal error; the agent tries again")
            return LONGEST_PAUSE

    async def _send_report(self) -> float:
        try:
            report = self._unanswered or await self._made()
        except AdminUnreachable:
            return FIRST_SECONDS
        self._unanswered = report
        try:
            wanted = await self._send(report)
        except ReportRefused as error:
            return self._not_taken(error)
        self._unanswered, self._pause, self._why = None, FIRST_SECONDS, ""
        return min(MOST_SECONDS, max(LEAST_SECONDS, wanted))

    async def _made(self) -> bytes:
        statistics, now = read(await self._admin.json(STATS_PATH)), self._monotonic()
        report = self._reports.next(since(self._seen, statistics), now - self._at)
        self._seen, self._at = statistics, now
        return report

    def _not_taken(self, error: ReportRefused) -> float:
        if str(error) != self._why:
            _log.warning("statistics report failed; the agent tries again", reason=str(error))
        self._why = str(error)
        if error.unfit:
            self._unanswered = None
        self._pause = LONGEST_PAUSE if error.refused else min(LONGEST_PAUSE, 2 * self._pause)
        return self._pause * self._dice.uniform(0.5, 1.0)
