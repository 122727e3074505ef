"""Tests of the verdicts that are kept for the next start."""

import asyncio
from datetime import datetime

from meshwright.admin.metrics.registry import Metrics
from meshwright.delivery.ack_handling import Answers
from meshwright.delivery.publisher import Publisher
from meshwright.delivery.quarantine.quarantine import Quarantine
from meshwright.delivery.quarantine.verdicts import Verdict
from meshwright.sidecars.envoy.empty_resources import empty
from tests.unit.delivery.quarantine.test_verdicts_of_other_servers import VERDICT
from xds.cache import SnapshotCache


async def test_verdict_found_before_the_task_begins_is_kept(now: datetime) -> None:
    """Proxies are served, and may reject policy, before the server starts the tasks of delivery."""
    quarantine = Quarantine(empty)
    answers = Answers(Publisher(SnapshotCache(), quarantine, Metrics()), lambda: None, lambda: now)
    answers.heard(VERDICT.proxy, (VERDICT,), frozenset())
    answers.judged()
    loop, kept = asyncio.get_running_loop(), asyncio.Queue[tuple[Verdict, ...]]()

    def keep(verdicts: tuple[Verdict, ...]) -> None:
        loop.call_soon_threadsafe(kept.put_nowait, verdicts)

    keeping = asyncio.create_task(answers.keeping(keep))
    async with asyncio.timeout(5):
        assert await kept.get() == (VERDICT,)
    keeping.cancel()
    await asyncio.wait([keeping])
