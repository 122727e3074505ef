"""Tests of a server with service certificates from a real OpenBao, and of a change of the issuer."""

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from certs.keys.bundle import TrustBundle
from certs.keys.leaf import is_signed_by_bundle, read_leaf
from tests.feature.issuers.conftest import Pki
from tests.feature.issuers.sidecar import come, found, gone, secrets
from tests.tools.forked_cli import Typed
from tests.tools.program import SECONDS, Program, Server


@pytest.fixture
def program(tmp_path: Path, typed: Typed) -> Iterator[Program]:
    """The program with a small shop."""
    made = Program(tmp_path / "state", tmp_path / "files", typed)
    yield made
    made.end()


def _told(pki: Pki, token: Path) -> list[str]:
    answer = {
        "issuer": "vault",
        "vault_address": pki.bao.api.address,
        "vault_ca": str(pki.bao.api.ca),
        "vault_mount": pki.mount,
        "vault_role": "mesh",
        "vault_token_file": str(token),
        "log_level": "debug",
    }
    return [word for name, value in answer.items() for word in ("--set", f"{name}={value}")]


def test_certificate_of_vault_is_served_on_after_a_change_of_issuer(pki: Pki, program: Program) -> None:
    """The new issuer's roots are added to Vault's, and the old certificate stays.

    The log has no key or token.
    """
    pki.role(allowed_uri_sans=["spiffe://cluster.local/*"])
    program.issued("one")
    token = pki.token()
    server = program.serve(*_told(pki, pki.file("token", token)))
    chain, roots = secrets(program, server)
    vault = TrustBundle.from_pems([roots])
    assert is_signed_by_bundle(chain, roots)
    assert read_leaf(chain).names.uris == ("spiffe://cluster.local/ns/shop/sa/store",)
    assert server.metric('meshwright_certificates_issued_total{issuer="vault",kind="service"}') == 1
    assert server.metric('meshwright_certificates_renewed_total{issuer="vault"}') == 0
    kept = (program.state / "services" / "shop" / "store" / "certificate.pem").read_text()
    key = kept.partition("-----END PRIVATE KEY-----")[0].split()[3:5]
    assert len(key) == 2
    assert not [item for item in (token, *key) if item in server.log_path.read_text()]
    (pages,) = [program.run("debug", "settings", "--state", str(program.state))[1]]
    assert token not in pages
    server.stop()

    server = program.serve()
    again, both = secrets(program, server)
    assert again == chain
    assert TrustBundle.from_pems([both]) == vault.union(
        TrustBundle.from_pems([(program.files / "one" / "ca.pem").read_bytes()])
    )
    (answer,) = server.said("issuer of service certificates replaced")
    assert answer["issuer"] == "built-in"
    server.stop()


def test_server_with_a_sealed_vault_serves_its_certificates_after_a_restart(
    pki: Pki, program: Program
) -> None:
    """A refused certificate is counted as a failure, and is issued when the role permits it."""
    flags = _told(pki, pki.file("token", pki.token()))
    program.issued("one")
    pki.role(allowed_uri_sans=["spiffe://other/*"])
    server = program.serve(*flags)
    asyncio.run(_refused(program, server))
    pki.role(allowed_uri_sans=["spiffe://cluster.local/*"])
    chain, _ = secrets(program, server)
    server.stop()
    with pki.bao.sealed():
        server = program.serve(*flags)
        assert secrets(program, server)[0] == chain
        server.stop()


async def _refused(program: Program, server: Server) -> None:
    """Connect a sidecar until the issuer has refused its certificate."""
    sidecar, running = come(program, str(server.bound["ads"]))
    failed = 'meshwright_certificates_failed_total{issuer="vault",reason="issuer"}'
    async with asyncio.timeout(SECONDS):
        while failed not in (await asyncio.to_thread(server.get, "/metrics"))[1]:
            assert not running.done()
            await asyncio.sleep(0.1)
    await gone(running)
    assert found(sidecar) == []


def test_first_start_with_a_sealed_vault_is_refused(pki: Pki, program: Program) -> None:
    """Without saved roots there is nothing to trust. The message has the request and Vault's answer."""
    flags = _told(pki, pki.file("token", pki.token()))
    with pki.bao.sealed():
        text = program.refused(*flags)
    assert text.endswith("answered 503 at " + f"{pki.mount}/cert/ca_chain: Vault is sealed")


def test_stop_during_the_first_start_does_not_wait_for_a_silent_vault(pki: Pki, program: Program) -> None:
    """The server ends in order, although a request to Vault has no answer."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(SECONDS)
        flags = _told(pki, pki.file("token", pki.token()))
        server = program._start(*flags, "--set", f"vault_address=http://127.0.0.1:{silent.getsockname()[1]}")
        connection, _ = silent.accept()
        with connection:
            server.stop()
    assert server.log_path.with_suffix(".out").read_text() == ""
    assert [item["event"] for item in server.log()][-1] == "shutdown started"
