"""Tests of rejected policy with several servers: what one proxy has rejected at one server holds at all."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from certs.ledger.records.fields import key_of_proxy
from meshwright.mesh.identity import ProxyName
from meshwright.records.content import Content
from tests.feature.identity.conftest import Server
from tests.feature.rejection.conftest import Join
from tests.feature.rejection.test_rejections import BANK, DOCUMENTS, SHOP, _poisoned, _split
from tests.tools.deadline import until
from tests.tools.servers_in_memory import Servers, servers_in_memory
from xds.stream_status import Variant

PICKY = "one.buyer.shop"
POISONED = (*DOCUMENTS, _split("poison"), _split("beside", "bank"))


@pytest.fixture
async def servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Servers]:
    """Servers of one mesh, which are not started yet."""
    async with servers_in_memory(tmp_path, monkeypatch) as made:
        yield made


async def _problems(server: Server) -> list[dict[str, Any]]:
    """Return the problems of rejections, over all servers."""
    problems = (await server.ask("GET", "/debug/policies"))["problems"]
    return [problem for problem in problems if problem["code"] == "resource-rejected"]


def _rejected(servers: Servers) -> dict[str, Any]:
    """Return the rejections in the record of the picky proxy, by unit of policy."""
    record = servers.memory.records[key_of_proxy(ProxyName.parse(PICKY))]
    rejected: Any = Content.decode(record.content).fields.get("rejected", {})
    return dict(rejected)


@pytest.mark.parametrize("variant", list(Variant))
async def test_proxy_that_moves_is_not_sent_what_it_has_rejected(
    servers: Servers, join: Join, variant: Variant
) -> None:
    """The other server has no search, serves everything else, and ends the verdict with the policy."""
    one, two = await servers.start("a", *POISONED), await servers.start("b", *POISONED)
    pair = await servers.certificate(PICKY)
    picky = join(one, PICKY, variant, _poisoned, pair=pair)
    await until(lambda: b"split:shop/beside" in picky.routes(BANK) and picky.routes(SHOP))
    await until(lambda: _rejected(servers))
    assert picky.rejected

    picky.end()
    moved = join(two, PICKY, variant, _poisoned, pair=pair)
    await until(lambda: b"split:shop/beside" in moved.routes(BANK) and moved.routes(SHOP))
    assert moved.rejected == []
    assert not any(_poisoned(value) for _, value in moved.sent)
    for server in (one, two):
        [problem] = await _problems(server)
        assert problem["object"] == "TrafficSplit shop/poison"

    for server in (one, two):
        server.write(*DOCUMENTS, _split("mended"), _split("beside", "bank"))
    await until(lambda: b"split:shop/mended" in moved.routes(SHOP))
    await until(lambda: not _rejected(servers))
    assert moved.rejected == []


async def test_rejection_found_without_the_store_is_written_later(servers: Servers, join: Join) -> None:
    """Until then it is in force on its server, and in the state directory, so that a restart keeps it."""
    one = await servers.start("a", *DOCUMENTS, _split("good"))
    two = await servers.start("b", *POISONED)
    _, here, _ = servers.connections
    pair = await servers.certificate(PICKY)
    picky = join(one, PICKY, Variant.DELTA, _poisoned, pair=pair)
    await until(lambda: b"split:shop/good" in picky.routes(SHOP))
    here.is_away = True
    one.write(*POISONED)
    saved = one.state / "rejected-policy.json"
    await until(lambda: saved.exists() and b"TrafficSplit shop/poison" in saved.read_bytes())
    assert picky.rejected
    assert not _rejected(servers)

    servers.thread.loop.call_soon_threadsafe(here.heal)
    await until(lambda: _rejected(servers))
    await until(lambda: b"TrafficSplit shop/poison" not in saved.read_bytes())
    picky.end()
    moved = join(two, PICKY, Variant.DELTA, _poisoned, pair=pair)
    await until(lambda: b"split:shop/beside" in moved.routes(BANK) and moved.routes(SHOP))
    assert not any(_poisoned(value) for _, value in moved.sent)
