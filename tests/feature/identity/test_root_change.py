"""Tests of the root's rotation over real sockets: stages, evidence, and abort."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from certs.custody import LEDGER_FILE, opened
from certs.issuers.ca_folder import fingerprint_in
from certs.keys.leaf import is_signed_by_bundle
from certs.proxy import issue_proxy
from certs.roots.rotation import advanced
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import TrustDomain
from tests.feature.identity.root_follower import Follower
from tests.feature.identity.test_enrolment import PORTS
from tests.feature.identity.test_identity import workload
from tests.tools.deadline import Deadline
from tests.unit.certs.authority_files.steps import begin, recovered, step
from tests.unit.certs.issuers.example_cas import ca

Serve = Callable[..., Awaitable[Any]]
ROTATE = "/certs/rotate-root"
DOMAIN = TrustDomain("cluster.local")
ENROLLED, BARE, ABSENT = "one.store.shop", "two.store.shop", "three.store.shop"
MESH = (workload("one", host=1), workload("two", host=2), workload("three", host=3))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check for changes more often."""
    monkeypatch.setattr("meshwright.controller.roots.change.LOOK_SECONDS", 0.1)


async def until(server: Any, stage: str | None, **waiting: list[str]) -> dict[str, Any]:
    """Return the rotation once it is at a stage and waits for these UUIDs for these reasons."""
    deadline = Deadline(60)
    while True:
        result: dict[str, Any] = await server.ask("GET", ROTATE)
        held = {item["proxy"].partition(".")[0]: item["why"] for item in result.get("waiting_for", [])}
        if result["stage"] == stage and held == waiting:
            return result
        assert not deadline.has_passed(), (result["stage"], held)
        await asyncio.sleep(deadline.pause())


def follower(server: Any, name: str) -> Follower:
    """Return a proxy with a certificate of the root that signs now."""
    return Follower(server, name, server.certificate(name), server.authority.trust_bundle())


async def test_rotation_waits_for_every_proxy_until_it_is_given_up(serve: Serve) -> None:
    """An Envoy with an agent follows alone. Proxies without an agent or connection are given up by name."""
    server = await serve(*MESH, **PORTS)
    old = fingerprint_in(server.state / "ca")
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(follower(server, ENROLLED).running())
        two = await stack.enter_async_context(follower(server, BARE).running(agent=False))
        server.certificate(ABSENT)
        first = one.chain
        begun = await server.ask("POST", ROTATE, {})
        assert (begun["stage"], begun["signer"]) == ("trusting", old)
        waiting = {"two": ["channel-trust"], "three": ["never-connected", "channel-trust"]}
        result = await until(server, "trusting", **waiting)
        assert result["trusted"] == [old, result["other"]]
        # Both followers trust both roots, and no certificate has changed.
        assert is_signed_by_bundle(one.chain, two.mesh_roots)
        assert one.chain == first
        await server.ask("POST", ROTATE, {"give_up": [ABSENT]})
        await until(server, "trusting", two=waiting["two"])
        await server.ask("POST", ROTATE, {"give_up": [BARE]})
        await until(server, None)
        assert fingerprint_in(server.state / "ca") == result["other"]
        assert one.serials, "it has renewed"
        assert one.chain != first
        assert is_signed_by_bundle(one.chain, one.mesh_roots)
        assert not is_signed_by_bundle(first, one.mesh_roots)
        # A proxy that was given up is refused, because the root of its certificate is no longer trusted.
        await server.until({ENROLLED: "connected", BARE: "disconnected", ABSENT: "expected"})


async def test_rotation_does_not_wait_for_certificates_of_another_issuer(
    serve: Serve, tmp_path: Path
) -> None:
    """Service certificates come from a CA in files, so they and their roots do not change."""
    ca("other", datetime.now(UTC)).put(tmp_path)
    files = {"ca_certificate": tmp_path / "tls.crt", "ca_key": tmp_path / "tls.key"}
    server = await serve(*MESH, **PORTS, issuer="files", **files)
    async with follower(server, ENROLLED).running() as one:
        first, roots = one.chain, one.mesh_roots
        await server.ask("POST", ROTATE, {})
        await until(server, None)
        assert one.serials, "it has renewed"
        assert (one.chain, one.mesh_roots) == (first, roots)


@pytest.mark.parametrize("stage", ["trusting", "replacing"])
async def test_aborted_rotation_returns_to_the_old_root(serve: Serve, stage: str) -> None:
    """Proxies that follow end with certificates and roots of the old root, at either stage."""
    server = await serve(*MESH, **PORTS)
    old = fingerprint_in(server.state / "ca")
    two = follower(server, BARE)
    confirms = stage == "replacing"
    async with follower(server, ENROLLED).running() as one, two.running(agent=confirms, renews=False):
        await server.ask("POST", ROTATE, {})
        await until(server, stage, two=["proxy-certificate" if confirms else "channel-trust"])
        back = await server.ask("POST", ROTATE, {"abort": True})
        assert back["aborted"]
        await until(server, None)
        assert fingerprint_in(server.state / "ca") == old
        assert is_signed_by_bundle(one.chain, one.mesh_roots)
        await server.until({ENROLLED: "connected", BARE: "connected", ABSENT: "expected"})


async def test_rotation_does_not_advance_while_the_ledger_is_rebuilt(serve: Serve, tmp_path: Path) -> None:
    """The proxies are unknown during the rebuild, so no step is taken and the needed root stays."""
    state, now = tmp_path / "state", datetime.now(UTC)
    with opened(state, DOMAIN, now) as authority:
        name = ProxyName.parse(ENROLLED)
        serial = issue_proxy(authority.authority, authority.ledger, name, timedelta(hours=1), now).serial
        authority.first.note(authority.ledger)
    rotation = advanced(begin(state, DOMAIN, now), now)
    assert rotation is not None
    step(state, rotation)
    (state / LEDGER_FILE).unlink()
    server = await serve(*MESH, rebuild_ledger=serial)
    for body in ({"abort": True}, {"give_up": [ENROLLED]}, {}):
        with pytest.raises(AssertionError, match="the ledger is being rebuilt"):
            await server.ask("POST", ROTATE, body)
    assert (await server.ask("GET", ROTATE))["stage"] == "replacing"
    assert recovered(state) == rotation


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"abort": True}, "no root is being changed"),
        ({"give_up": [BARE]}, "no root is being changed"),
        ({"abort": 1}, "abort must be true or false"),
        ({"give_up": "two"}, "give_up must be a list of proxy names"),
        ({"older_than_seconds": -1}, "older_than_seconds must be a number of seconds, 0 or more"),
        ({"aborted": True}, "unknown field 'aborted': must be one of abort, give_up, older_than_seconds"),
        ([], "the body must be a JSON object"),
    ],
)
async def test_invalid_rotation_request_is_refused(serve: Serve, body: object, words: str) -> None:
    """The error says what is valid, and no rotation begins."""
    server = await serve(*MESH)
    with pytest.raises(AssertionError, match=words):
        await server.ask("POST", ROTATE, body)
    assert (await server.ask("GET", ROTATE)) == {"stage": None}


async def test_second_rotation_and_unneeded_give_up_are_refused(serve: Serve) -> None:
    """Only a proxy that delays the rotation can be given up, by name or by the time since its last use."""
    server = await serve(*MESH)
    server.certificate(ABSENT, lived=timedelta(minutes=30))
    server.certificate(BARE)  # issued just now, before the machine's first connection
    await server.ask("POST", ROTATE, {})
    assert await server.counted("meshwright_root_rotation_stage", 1) == 1
    assert await server.counted("meshwright_trust_bundle_roots", 2) == 2
    with pytest.raises(AssertionError, match="a rotation of the root is in progress"):
        await server.ask("POST", ROTATE, {})
    with pytest.raises(
        AssertionError, match=f"{ENROLLED} does not delay the rotation; the rotation waits for: {ABSENT}, "
    ):
        await server.ask("POST", ROTATE, {"give_up": [ENROLLED]})
    given_up = await server.ask("POST", ROTATE, {"older_than_seconds": 600})
    assert list(given_up["given_up"]) == [ABSENT]
    await server.ask("POST", ROTATE, {"give_up": [BARE]})
    await until(server, None)
