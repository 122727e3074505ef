"""Tests of a root rotation with three servers: one of them leads, and each may fail at any moment."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from certs.errors import RequestError, StateError
from certs.roots.evidence import BlockingPart, BlockReason, Part
from certs.roots.rotation import Stage
from certs.roots.status import ChangeStatus
from tests.tools.deadline import Deadline
from tests.tools.hypothesis_profiles import examples
from tests.unit.controller.roots.mesh import Mesh, MeshServer, mesh

ALL = [None, Stage.TRUSTING, Stage.REPLACING, Stage.RETIRING, None]
"""The stages of one rotation, each once."""


@pytest.fixture
async def three(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Mesh]:
    """Provide a mesh of three servers, with a proxy at each; the agent of one asks another server."""
    monkeypatch.setattr("meshwright.controller.roots.change.LOOK_SECONDS", 0.002)
    async with running() as made:
        yield made


@asynccontextmanager
async def running(*ahead: timedelta) -> AsyncIterator[Mesh]:
    """Run a mesh of three servers, whose clocks are ahead by these times."""
    with mesh() as made:
        clocks = ahead or (timedelta(),) * 3
        one, two, three = (made.start(name, at) for name, at in zip("abc", clocks, strict=True))
        for name, server, asks in (("p", one, one), ("q", two, three), ("r", three, three)):
            made.join(name, server, asks)
        await made.turn()
        try:
            yield made
        finally:
            await made.end()


async def waits_for(mesh: Mesh, server: MeshServer, *parts: BlockingPart, proxies: str = "") -> ChangeStatus:
    """Return the status at a server once it names these parts and these proxies, and let some turns pass."""
    deadline = Deadline(30)
    while True:
        status = await server.change.status()
        assert not deadline.has_passed(), (status.behind, _why(status))
        if status.behind == parts and "".join(_why(status)) == proxies:
            break
        await mesh.turn()
    for _ in range(20):
        await mesh.turn()
    after = await server.change.status()
    assert (after.rotation, after.behind, [*_why(after)]) == (status.rotation, parts, [*_why(status)])
    return after


def _why(status: ChangeStatus) -> dict[str, tuple[BlockReason, ...]]:
    return {held.proxy.uuid: held.why for held in status.holdouts}


async def test_root_is_rotated_with_proxies_at_three_servers(three: Mesh) -> None:
    """A proxy counts by what all servers together know: its stream is at one, and its agent asks another."""
    one, _, last = three.servers
    one.lead(1)
    await last.change.begin()
    await three.until(three.is_done)
    assert three.memory.stages() == ALL
    assert {server.authority.fingerprint for server in three.servers} == {one.ledger.authority()}
    await three.until(lambda: not [key for key in three.memory.records if key.startswith("reports")])


@pytest.mark.fuzzed
async def test_leader_may_be_killed_before_and_after_every_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next leader goes on from the last step: none is lost or taken twice, and all chains hold.

    Every run kills it before some writes and after others, and once not at all.
    """
    monkeypatch.setattr("meshwright.controller.roots.change.LOOK_SECONDS", 0.002)
    writes = len(("lead", "begin", *ALL[2:]))
    for moment in (*range(0, 2 * writes, examples(3, fresh=1)), 2 * writes):
        async with running() as made:
            one, two, three = made.servers
            one.client.left = moment
            one.lead(1)
            try:
                await one.change.begin()
            except StateError:
                assert one.client.is_away
            await made.until(lambda: one.client.is_away or made.is_done())  # noqa: B023 - called at once
            if is_last := not one.client.is_away:
                assert moment == 2 * writes
            else:
                await one.kill()
                two.lead(2)
                made.proxies[0].connect(three)
                made.proxies[0].asks = two
                await made.turn()
                if made.memory.rotations == [None]:
                    await three.change.begin()
                await made.until(made.is_done)
            assert made.memory.stages() == ALL, moment
    assert is_last


async def test_two_leaders_at_once_take_each_step_once(three: Mesh) -> None:
    """The former leader does not know yet that it has lost the Lease."""
    one, two, last = three.servers
    one.lead(1)
    two.lead(1)
    await last.change.begin()
    await three.until(three.is_done)
    assert three.memory.stages() == ALL


async def test_leader_that_loses_its_lease_follows_the_next_one(three: Mesh) -> None:
    """It serves on, and takes over the steps of the next leader; also if that one changes after each step."""
    for epoch, stage in enumerate((1, 2, 3, 0), start=1):
        leader = three.servers[epoch % 3]
        leader.lead(epoch)
        if epoch == 1:
            await three.servers[0].change.begin()
        await three.until(lambda: {server.change.stage for server in three.servers} == {stage})  # noqa: B023
        assert leader.term is not None
        leader.term.cancel()
    assert three.is_done()
    assert three.memory.stages() == ALL


async def test_server_that_starts_during_a_rotation_is_waited_for(three: Mesh) -> None:
    """It begins with the present step, and its proxies count from then on."""
    one = three.servers[0]
    await one.change.begin()
    await three.until(lambda: one.change.stage == 1)
    new = three.start("d")
    proxy = three.join("s", new)
    proxy.asks = None
    release = new.hold()
    one.lead(1)
    part = BlockingPart(Part.OTHER_SERVER, BlockReason.NO_REPORT, "d")
    await waits_for(three, one, part, proxies="s")
    release()
    proxy.asks = new
    await three.until(three.is_done)
    assert new.authority.fingerprint == one.authority.fingerprint


async def test_no_step_is_taken_before_all_servers_have_taken_over_the_last_one(three: Mesh) -> None:
    """The server that cannot reach the store serves its proxies on, and is named."""
    one, _, last = three.servers
    one.lead(1)
    last.client.is_away = True
    await one.change.begin()
    part = BlockingPart(Part.OTHER_SERVER, BlockReason.NO_REPORT, "c")
    await waits_for(three, one, part, proxies="qr")
    assert last.authority.rotation is None
    three.thread.run(_healed(last))
    await three.until(three.is_done)
    assert three.memory.stages() == ALL


async def test_server_that_stays_behind_later_is_waited_for(three: Mesh) -> None:
    """It has reported the stage before, and then does not hear of the next one."""
    one, _, last = three.servers
    await one.change.begin()
    await three.until(lambda: one.change.stage == last.change.stage == 1)
    for _ in range(20):
        await three.turn()
    last.client.is_away = True
    one.lead(1)
    await three.until(lambda: one.change.stage == 2)
    part = BlockingPart(Part.OTHER_SERVER, BlockReason.STEP_NOT_TAKEN, "c")
    await waits_for(three, one, part, proxies="qr")
    three.thread.run(_healed(last))
    await three.until(three.is_done)
    assert three.memory.stages() == ALL


async def test_proxies_of_a_killed_server_are_waited_for_until_they_are_somewhere(three: Mesh) -> None:
    """They are connected nowhere, so no server reports them. Afterwards another server reports them."""
    one, two, _ = three.servers
    await one.change.begin()
    await two.kill()
    one.lead(1)
    status = await waits_for(three, one, proxies="q")
    assert _why(status) == {"q": (BlockReason.MESH_TRUST,)}
    three.proxies[1].connect(one)
    await three.until(three.is_done)
    assert three.memory.stages() == ALL


async def test_certificate_of_a_server_that_is_behind_is_waited_for(three: Mesh) -> None:
    """A machine joins at it after the stage began, and gets the former roots only. It then goes away."""
    one, _, last = three.servers
    release = last.hold()
    await one.change.begin()
    three.now += timedelta(minutes=1)
    proxy = three.join("late", last)
    proxy.at = proxy.asks = None
    release()
    one.lead(1)
    status = await waits_for(three, one, proxies="late")
    assert _why(status) == {"late": (BlockReason.NEVER_CONNECTED, BlockReason.CHANNEL_TRUST)}
    proxy.connect(last)
    proxy.asks = last
    await three.until(three.is_done)
    assert three.memory.stages() == ALL


async def test_certificates_that_the_leader_does_not_know_yet_are_waited_for(three: Mesh) -> None:
    """Its watch of the ledger is late, and the proxy would not be among those that it waits for."""
    one, _, last = three.servers
    one.feed.is_cut = True
    three.join("new", last).asks = None
    await one.change.begin()
    one.lead(1)
    part = BlockingPart(Part.OTHER_SERVER, BlockReason.UNKNOWN_CERTIFICATES, "c")
    await waits_for(three, one, part)
    one.feed.heal()
    status = await waits_for(three, one, proxies="new")
    assert _why(status) == {"new": (BlockReason.CHANNEL_TRUST,)}


async def test_commands_are_taken_at_every_server(three: Mesh) -> None:
    """Beginning, aborting and giving up work beside the leader; the answer is that of the whole mesh."""
    one, two, last = three.servers
    three.proxies[2].asks = None
    one.lead(1)
    begun = await two.change.begin()
    assert begun.other_servers == ("a", "c")
    with pytest.raises(RequestError, match="a rotation of the root is in progress"):
        await last.change.begin()
    for server in three.servers:
        await waits_for(three, server, proxies="r")
    await last.change.give_up(["r.shop.prod"])
    three.proxies.pop()
    await three.until(lambda: two.change.stage == 2)
    await two.change.abort()
    await three.until(three.is_done)
    assert three.memory.stages() == [*ALL[:2], Stage.TRUSTING, *[Stage.REPLACING] * 2, *ALL[3:]]
    with pytest.raises(RequestError, match="no root is being changed"):
        await two.change.abort()


async def test_proxies_are_not_given_up_by_age_while_they_may_be_connected_elsewhere(three: Mesh) -> None:
    """Only the server of a proxy knows when it was seen last. By name it can be given up at any time."""
    one, two, _ = three.servers
    await one.change.begin()
    three.proxies[1].asks = None
    await two.kill()
    await waits_for(three, one, proxies="q")
    three.proxies.pop(1)
    three.now += timedelta(days=8)
    one.has_departures = True
    with pytest.raises(RequestError, match="has ended, or this one has begun, less than a minute ago"):
        await one.change.give_up([], timedelta(days=7))
    one.has_departures = False
    new = three.start("d")
    new.hold()
    with pytest.raises(RequestError, match="the server d has not reported which proxies are connected to it"):
        await one.change.give_up([], timedelta(days=7))
    await new.kill()
    assert (await one.change.give_up([], timedelta(days=7))).holdouts == ()


@pytest.mark.parametrize("seconds", [(0, 50, -50), (50, 0, -5), (-50, 0, 50)])
async def test_clocks_of_the_servers_may_differ(
    monkeypatch: pytest.MonkeyPatch, seconds: tuple[int, ...]
) -> None:
    """Less than a minute, by which a CA certificate begins earlier, delays nothing."""
    monkeypatch.setattr("meshwright.controller.roots.change.LOOK_SECONDS", 0.002)
    async with running(*(timedelta(seconds=each) for each in seconds)) as made:
        one, two, _ = made.servers
        one.lead(1)
        await two.change.begin()
        await made.until(made.is_done)
        assert made.memory.stages() == ALL


async def _healed(server: MeshServer) -> None:
    server.client.heal()
