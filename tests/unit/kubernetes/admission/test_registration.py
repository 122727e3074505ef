"""Tests of the admission webhook's registration with errors, refusals and other owners."""

import asyncio
import itertools
from datetime import UTC, datetime
from typing import Any

import pytest

import meshwright.kubernetes.admission.registration
from certs.keys.bundle import TrustBundle
from meshwright.kube.builtin import VALIDATING
from meshwright.kubernetes.admission.configuration import (
    HOME,
    NAME,
    WEBHOOK,
    Configuration,
    configuration,
    home_of,
    is_as,
    names_of,
)
from meshwright.kubernetes.admission.place import Place
from meshwright.kubernetes.admission.registration import (
    DISPUTED,
    LONGEST_SECONDS,
    REST_SECONDS,
    Registration,
    rest,
)
from meshwright.kubernetes.admission.roots import believed
from tests.unit.certs.issuers.example_cas import ca
from tests.unit.kube.scripted_api import Line, ReceivedRequest, ScriptedServer, api_of, older

WANTED = configuration(Place.parse("https://10.0.0.5:9443"), b"")


async def none_there(asked: ReceivedRequest, line: Line) -> None:
    """Answer a list and a watch without any registration."""
    if asked.streaming:
        await older(asked, line)
    elif asked.verb == "list":
        await line.answer(
            {"kind": f"{VALIDATING.kind}List", "metadata": {"resourceVersion": "1"}, "items": []}
        )
    else:
        await line.hang()


@pytest.mark.parametrize("metadata", [None, "x", [1], {}])
async def test_malformed_answer_does_not_end_the_registration(metadata: object) -> None:
    """A failed registration would end the whole server."""
    written = asyncio.Event()

    async def play(asked: ReceivedRequest, line: Line) -> None:
        if asked.method == "PATCH":
            written.set()
            await line.answer({"kind": VALIDATING.kind, "metadata": metadata})
        else:
            await none_there(asked, line)

    async with ScriptedServer(play) as server, api_of(server) as api:
        made = Registration(api, lambda: WANTED, lambda: datetime.now(UTC))
        before = made.is_settled
        running = asyncio.create_task(made.run())
        try:
            async with asyncio.timeout(60):
                await written.wait()
                while not made.state.is_right and not running.done():
                    await asyncio.sleep(0)
            assert (running.done(), before, made.is_settled) == (False, False, True)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def test_readiness_waits_only_for_the_first_answer() -> None:
    """A refusal is enough for readiness, because a server that may not register still serves proxies."""
    answers = asyncio.Event()

    async def play(asked: ReceivedRequest, line: Line) -> None:
        if asked.method == "PATCH":
            await answers.wait()
            await line.refuse(403, "Forbidden", 'x is forbidden: User "mesh" cannot patch it')
        else:
            await none_there(asked, line)

    async with ScriptedServer(play) as server, api_of(server) as api:
        made = Registration(api, lambda: WANTED, lambda: datetime.now(UTC))
        running = asyncio.create_task(made.run())
        try:
            async with asyncio.timeout(60):
                while not any(item.method == "PATCH" for item in server.asked):
                    await asyncio.sleep(0)
                before = made.is_settled
                answers.set()
                while not made.is_settled:
                    await asyncio.sleep(0)
            assert (before, made.state.is_right, bool(made.remarks())) == (False, False, True)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def test_trusted_roots_are_those_of_the_written_registration() -> None:
    """If the registration may be written and not read, the answer to the write shows the CA bundle."""
    root = TrustBundle.from_pems([_root()])
    fields = configuration(Place.parse("https://10.0.0.5:9443"), root.pem)

    async def play(asked: ReceivedRequest, line: Line) -> None:
        if asked.method == "PATCH":
            await line.answer({**fields, "kind": VALIDATING.kind, "metadata": {"resourceVersion": "1"}})
        else:
            await line.refuse(403, "Forbidden", "x is forbidden")

    async with ScriptedServer(play) as server, api_of(server) as api:
        made = Registration(api, lambda: fields, lambda: datetime.now(UTC))
        assert made.trusted == b""
        running = asyncio.create_task(made.run())
        try:
            async with asyncio.timeout(60):
                while not made.trusted:
                    await asyncio.sleep(0)
            assert made.trusted == root.pem
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


def test_only_roots_in_every_webhook_of_ours_are_trusted() -> None:
    """The result is the intersection of our webhooks' CA bundles, and empty for a malformed registration."""
    first, second = TrustBundle.from_pems([_root()]), TrustBundle.from_pems([_root()])
    place, both = Place.parse("https://10.0.0.5:9443"), first.union(second)
    whole, narrow, other = (
        configuration(place, trust_bundle.pem, home="home")["webhooks"]
        for trust_bundle in (both, first, second)
    )
    names = names_of(configuration(place, b"", home="home"))
    assert believed({"webhooks": whole}, names) == both
    assert believed({"webhooks": [*whole, {"name": "other.example.com"}]}, names) == both
    assert believed({"webhooks": [narrow[0], *whole[1:]]}, names) == first
    assert believed({"webhooks": [narrow[0], other[1]]}, names).fingerprints == ()
    odd = {**whole[0], "clientConfig": {"caBundle": "%%"}}
    for nonsense in (None, "x", {}, {"webhooks": 1}, {"webhooks": [{"name": WEBHOOK}]}, {"webhooks": [odd]}):
        assert believed(nonsense, names).fingerprints == ()


def _root() -> bytes:
    return ca("root", datetime.now(UTC)).pem


def _at_home(namespace: str) -> Configuration:
    place = Place.parse(f"{namespace}/webhook")
    return configuration(place, _root(), home=namespace)


async def test_registration_of_another_mesh_is_kept_and_reported() -> None:
    """A cluster has one registration of that name, and two meshes would overwrite each other.

    Ours is written once the other is deleted.
    """
    theirs, gone = _at_home("first"), asyncio.Event()
    theirs = {**theirs, "metadata": {**theirs["metadata"], "resourceVersion": "7"}}
    at = {"kind": f"{VALIDATING.kind}List", "metadata": {"resourceVersion": "7"}, "items": [theirs]}

    async def play(asked: ReceivedRequest, line: Line) -> None:
        if asked.method == "PATCH":
            await line.answer({**_at_home("second"), "metadata": {"resourceVersion": "9"}})
        elif asked.streaming:
            await older(asked, line)
        elif asked.verb == "list":
            await line.answer(at)
        else:
            await line.head()
            await gone.wait()
            last = {**theirs, "metadata": {**theirs["metadata"], "resourceVersion": "8"}}
            await line.send({"type": "DELETED", "object": last})
            await line.hang()

    async with ScriptedServer(play) as server, api_of(server) as api:
        made = Registration(api, lambda: _at_home("second"), lambda: datetime.now(UTC))
        made.look()  # before the first answer
        running = asyncio.create_task(made.run())
        try:
            async with asyncio.timeout(60):
                while not made.remarks():
                    await asyncio.sleep(0)
                (text,) = made.remarks()
                assert "belongs to the control plane in namespace first" in text
                assert (made.state.another_s, made.state.writes) == (True, 0)
                gone.set()
                while not made.state.is_right:
                    await asyncio.sleep(0)
            assert (made.state.another_s, made.remarks()) == (False, ())
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        assert [item.method for item in server.asked if item.method == "PATCH"] == ["PATCH"]


def test_home_of_a_configuration_is_its_control_planes_namespace() -> None:
    """A registration without a home and a malformed one have an empty home."""
    assert home_of(_at_home("first")) == "first"
    assert home_of(WANTED) == ""
    for nonsense in (None, "x", {}, {"webhooks": 1}, {"webhooks": [{"name": HOME, "namespaceSelector": 1}]}):
        assert home_of(nonsense) == ""


async def test_registration_that_cannot_be_watched_is_reported() -> None:
    """The remark names the missing verb, because the registration is then verified only once a minute."""

    async def play(asked: ReceivedRequest, line: Line) -> None:
        if asked.method == "PATCH":
            await line.answer({"kind": VALIDATING.kind, "metadata": {"resourceVersion": "1"}})
        else:
            await line.refuse(403, "Forbidden", f'x is forbidden: User "mesh" cannot {asked.verb} x')

    async with ScriptedServer(play) as server, api_of(server) as api:
        made = Registration(api, lambda: WANTED, lambda: datetime.now(UTC))
        running = asyncio.create_task(made.run())
        try:
            async with asyncio.timeout(60):
                while not (made.state.is_right and made.remarks()):
                    await asyncio.sleep(0)
            (text,) = made.remarks()
            assert text.startswith("the webhook's registration cannot be watched")
            assert "RBAC grants no `list` on `validatingwebhookconfigurations" in text
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def test_disputed_registration_is_rewritten_rarely_and_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another control plane or a deployment tool may rewrite the registration repeatedly.

    Pauses keep both clients from writing all the time.
    """
    monkeypatch.setattr(meshwright.kubernetes.admission.registration, "REST_SECONDS", 0.001)
    monkeypatch.setattr(meshwright.kubernetes.admission.registration, "LOOK_SECONDS", 0.001)
    versions = itertools.count(1)

    async def play(asked: ReceivedRequest, line: Line) -> None:
        if asked.method == "PATCH":
            await line.answer({"kind": VALIDATING.kind, "metadata": {"resourceVersion": str(next(versions))}})
        else:
            await none_there(asked, line)

    async with ScriptedServer(play) as server, api_of(server) as api:
        made = Registration(api, lambda: WANTED, lambda: datetime.now(UTC))
        running = asyncio.create_task(made.run())
        try:
            async with asyncio.timeout(60):
                while not made.remarks():
                    await asyncio.sleep(0)
            (text,) = made.remarks()
            assert text.startswith(
                "the webhook's registration is disputed: another client changes it repeatedly"
            )
            assert made.state.writes == DISPUTED + 1
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


def test_pauses_between_repairs_grow() -> None:
    """Pauses grow from seconds to minutes."""
    rests = [rest(times) for times in range(-2, 100)]
    assert (rests, rests[0], rests[-1]) == (sorted(rests), REST_SECONDS, LONGEST_SECONDS)


@pytest.mark.parametrize("name", [None, {}, ["x"]])
def test_webhook_without_a_valid_name_is_ignored(name: object) -> None:
    """A webhook whose name is missing or malformed is not ours."""
    result: dict[str, Any] = {**WANTED, "metadata": {**WANTED["metadata"], "name": NAME}}
    assert is_as({**result, "webhooks": [{"name": name}, *result["webhooks"]]}, dict(WANTED))
    assert not is_as({**result, "webhooks": [{"name": name}]}, dict(WANTED))


async def test_configuration_is_written_by_the_leader_only() -> None:
    """Another server is ready without it, writes nothing, and does when it leads."""
    leads, too_early = [False], list[str]()
    written = asyncio.Event()

    async def play(asked: ReceivedRequest, line: Line) -> None:
        if asked.method == "PATCH":
            if not leads[0]:
                too_early.append(asked.path)
            written.set()
            await line.answer({"kind": VALIDATING.kind, "metadata": {}})
        else:
            await none_there(asked, line)

    async with ScriptedServer(play) as server, api_of(server) as api:
        made = Registration(api, lambda: WANTED, lambda: datetime.now(UTC), leads=lambda: leads[0])
        running = asyncio.create_task(made.run())
        try:
            async with asyncio.timeout(60):
                while not any(item.streaming for item in server.asked):
                    await asyncio.sleep(0)
                made.look()
                for _ in range(20):
                    await asyncio.sleep(0)
                assert (made.is_settled, made.remarks(), made.state.is_right) == (True, (), False)
                leads[0] = True
                made.look()
                await written.wait()
            assert too_early == []
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
