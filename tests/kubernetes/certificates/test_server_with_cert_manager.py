"""Tests of a server whose service certificates are signed by cert-manager from the first start on."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from certs.keys.bundle import TrustBundle
from certs.keys.leaf import is_signed_by_bundle, read_leaf
from tests.feature.issuers.sidecar import come, gone, secrets
from tests.kubernetes.tools.certificate_issuers import SECONDS, Signing, new_ca
from tests.tools.forked_cli import Typed
from tests.tools.program import Program, Server
from tools.real_parts.processes import Service


@pytest.fixture
def program(tmp_path: Path, typed: Typed) -> Iterator[Program]:
    """Return the program with a small shop in files; the cluster is used for certificates only."""
    made = Program(tmp_path / "state", tmp_path / "files", typed)
    yield made
    made.end()


def _told(signing: Signing, issuer: str) -> list[str]:
    answer = {
        "issuer": "cert-manager",
        "cert_manager_issuer": issuer,
        "cert_manager_namespace": signing.namespace,
        "kubeconfig": str(signing.kubeconfig),
        "log_level": "debug",
    }
    return [word for name, value in answer.items() for word in ("--set", f"{name}={value}")]


def test_server_serves_certificates_signed_by_cert_manager(
    controllers: Service, signing: Signing, program: Program
) -> None:
    """Sidecars get them, and no key is in the log.

    A server that was killed while waiting leaves a request, and the next server makes a new one.
    """
    known = new_ca()
    signing.secret(known)
    flags = _told(signing, signing.ca_issuer())
    program.issued("one")
    server = program.serve(*flags)
    chain, roots = secrets(program, server)
    assert roots == TrustBundle.from_pems([known.pem]).pem
    assert is_signed_by_bundle(chain, roots)
    assert read_leaf(chain).names.uris == ("spiffe://cluster.local/ns/shop/sa/store",)
    assert server.metric('meshwright_certificates_issued_total{issuer="cert-manager",kind="service"}') == 1
    assert not signing.listed()
    kept = program.state / "services" / "shop" / "store" / "certificate.pem"
    key = kept.read_text().partition("-----END PRIVATE KEY-----")[0].split()[3:5]
    assert len(key) == 2
    assert not [item for item in key if item in server.log_path.read_text()]
    server.stop()

    kept.unlink()
    controllers.kill()
    try:
        server = program.serve(*flags)
        asyncio.run(_killed_while_it_waits(signing, program, server))
        assert len(signing.listed()) == 1
    finally:
        controllers.again()
    server = program.serve(*flags)
    again, _ = secrets(program, server)
    assert again != chain
    server.stop()


async def _killed_while_it_waits(signing: Signing, program: Program, server: Server) -> None:
    _, running = come(program, str(server.bound["ads"]))
    await asyncio.to_thread(signing.waiting)
    server.process.kill()
    server.process.wait(SECONDS)
    await gone(running)


def test_first_start_fails_without_a_signer_and_leaves_no_request(
    controllers: Service, signing: Signing, program: Program
) -> None:
    """The error names the missing issuer or approval. A server stopped while it waits deletes its request."""
    text = program.refused(*_told(signing, "Issuer/nobody"))
    assert f"issuers.cert-manager.io {signing.namespace}/nobody" in text
    signing.secret(new_ca())
    flags = _told(signing, signing.ca_issuer())
    controllers.kill()
    try:
        text = program.refused(*flags, "--set", "cert_manager_seconds=0.5")
        assert "was not signed within 0.5 s: it is not approved yet" in text
        server = program._start(*flags)
        signing.waiting()
        server.stop()
    finally:
        controllers.again()
    assert [item["event"] for item in server.log()][-1] == "shutdown started"
    assert not signing.listed()
