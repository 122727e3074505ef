"""Tests of commands over the socket: issuing, revoking, retrying, and their errors."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from certs.errors import RequestError, StateError
from certs.keys.material import PrivateKey, ProxyCertificate
from certs.ledger.entry import LedgerEntry, Stamp, StampDetail
from meshwright.admin.http import commands
from meshwright.admin.http.commands import CommandError, ProxyRequest, read_proxy_request
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import ProxyUuid, TrustDomain
from tests.unit.admin.conftest import NAME
from xds.protocol.resources.resource import ROUTE, Reference, ResourceName

KEY = "-----BEGIN PRIVATE KEY-----\n"


class _Proxies:
    """Fake registry of proxies: issues any certificate, and has one serial in its ledger."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        self.asked: list[ProxyRequest] = []

    def issue(self, request: ProxyRequest) -> ProxyCertificate:
        """Record the request and return a certificate; fail for the UUID "broken"."""
        if request.uuid == "broken":
            raise StateError("the ledger cannot be used")
        self.asked.append(request)
        name = ProxyName.parse(f"{request.uuid}.{request.service}.{request.namespace}")
        return ProxyCertificate(name, "ab", self.now, b"CHAIN", PrivateKey(KEY.encode()))

    def revoke(self, serial: str, why: str) -> LedgerEntry:
        """Revoke the serial "ab"; raise RequestError for any other serial."""
        if serial != "ab":
            raise RequestError(f"serial {serial} is not in the ledger")
        return LedgerEntry("ab", "u.s.n", ProxyUuid("u"), self.now, self.now).stamped(
            {Stamp.REVOKED: StampDetail(self.now, why)}
        )

    def trust_bundle(self) -> bytes:
        """Return a fixed root."""
        return b"ROOT"

    @property
    def trust_domain(self) -> TrustDomain:
        """Return a fixed trust domain."""
        return TrustDomain("mesh.example")


@pytest.fixture
def proxies(now: datetime) -> _Proxies:
    """Return the fake registry of proxies."""
    return _Proxies(now)


@pytest.fixture
def revoked() -> list[LedgerEntry]:
    """Return the list of revocations that the server was notified of."""
    return []


def retried(name: ProxyName) -> tuple[Reference, ...]:
    """Return one retried resource for the proxy `NAME`, and none for others."""
    return ((ROUTE, ResourceName("r")),) if name == NAME else ()


@pytest.fixture
async def client(
    reading: Any, proxies: _Proxies, revoked: list[LedgerEntry]
) -> AsyncIterator[TestClient[Any, Any]]:
    """Serve the commands."""
    app = web.Application(middlewares=[commands.explained])
    commands.add_commands(app, commands.Commands(reading, proxies, revoked.append, retried))
    async with TestClient(TestServer(app)) as test_client:
        yield test_client


async def test_issued_certificate_is_sent_with_its_key(
    client: TestClient[Any, Any], proxies: _Proxies
) -> None:
    """The answer contains the private key, and therefore has `Cache-Control: no-store`."""
    body = {
        "uuid": "u",
        "service": "s",
        "namespace": "n",
        "validity_days": 3,
        "claim_days": 2,
        "anyway": True,
    }
    response = await client.post("/certs/issue-proxy", json=body)
    assert await response.json() == {
        "name": "u.s.n",
        "serial": "ab",
        "not_after": "2026-01-02T03:04:05+00:00",
        "chain_pem": "CHAIN",
        "key_pem": KEY,
        "trust_bundle_pem": "ROOT",
        "trust_domain": "mesh.example",
    }
    assert response.headers["Cache-Control"] == "no-store"
    assert proxies.asked == [ProxyRequest("u", "s", "n", 3, anyway=True, claim_days=2)]


async def test_server_is_notified_of_a_revocation(
    client: TestClient[Any, Any], revoked: list[LedgerEntry]
) -> None:
    """A revocation is passed to the server, so that it can end streams that use the certificate."""
    response = await client.post("/certs/revoke", json={"serial": "ab", "reason": "stolen"})
    assert await response.json() == {"name": "u.s.n", "serial": "ab", "joined_by": None}
    assert [(entry.serial, entry.revoked_why) for entry in revoked] == [("ab", "stolen")]


@pytest.mark.parametrize(
    ("path", "body", "status", "error"),
    [
        ("/certs/revoke", {"serial": "cd"}, 400, "serial cd is not in the ledger"),
        ("/certs/revoke", {"serial": "ab", "reason": 1}, 400, "reason must be a text"),
        ("/certs/revoke", {}, 400, "serial must be a string of hexadecimal digits"),
        ("/certs/issue-proxy", [], 400, "the body must be a JSON object"),
        (
            "/certs/issue-proxy",
            {"uuid": "broken", "service": "s", "namespace": "n", "anyway": True},
            500,
            "the ledger cannot be used",
        ),
    ],
)
async def test_failed_command_answers_one_sentence(
    client: TestClient[Any, Any], path: str, body: object, status: int, error: str
) -> None:
    """A failed command answers one sentence, with 400 for a client's error and 500 for a server's error."""
    response = await client.post(path, json=body)
    assert (response.status, await response.json()) == (status, {"error": error})


async def test_body_that_is_not_json_gets_400(client: TestClient[Any, Any]) -> None:
    """A body that is not JSON gets 400 with one sentence."""
    response = await client.post("/certs/revoke", data=b"\xff")
    assert (response.status, await response.json()) == (400, {"error": "the body must be JSON"})


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"uuid": 1}, "uuid must be a DNS-1123 label"),
        ({"service": ""}, "service must be a DNS-1123 label"),
        ({"namespace": None}, "namespace must be a DNS-1123 label"),
        ({"validity_days": 0}, "validity_days must be a whole number from 1 to 3652 (days)"),
        ({"claim_days": 3653}, "claim_days must be a whole number from 1 to 3652 (days)"),
        ({"validity_days": True}, "validity_days must be a whole number from 1 to 3652 (days)"),
    ],
)
def test_error_names_the_invalid_field(wrong: dict[str, object], sentence: str) -> None:
    """An invalid field raises an error that names the field and the accepted values."""
    with pytest.raises(CommandError) as caught:
        read_proxy_request({"uuid": "u", "service": "s", "namespace": "n"} | wrong)
    assert str(caught.value) == sentence


async def test_retry_offers_the_rejected_resources_again(client: TestClient[Any, Any]) -> None:
    """The proxy can be given by any of its names, and the answer lists the offered resources."""
    response = await client.post("/proxies/retry", json={"proxy": "store-1"})
    assert (response.status, await response.json()) == (200, {"proxy": str(NAME), "offered": ["route r"]})
    response = await client.post("/proxies/retry", json={"proxy": "nobody"})
    assert response.status == 400
    assert (await response.json())["error"].startswith("proxy 'nobody' does not exist")
    assert (await client.post("/proxies/retry", json={})).status == 400
