"""A server whose service certificates cert-manager signs, from its first start on."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from certs.keys.bundle import TrustBundle
from certs.keys.leaf import read_leaf, stands_below
from tests.feature.issuers.sidecar import come, gone, secrets
from tests.kubernetes.tools.certificate_issuers import SECONDS, Signing, new_ca
from tests.tools.forked_cli import Typed
from tests.tools.program import Program, Server
from tools.real_parts.processes import Service


@pytest.fixture
def program(tmp_path: Path, typed: Typed) -> Iterator[Program]:
    """Return the program with a small shop of files: the cluster is asked for certificates alone."""
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


def test_a_server_whose_certificates_cert_manager_signs(
    controllers: Service, signing: Signing, program: Program
) -> None:
    """Sidecars get them; one that is killed while it waits has another ask anew; nobody sees a key."""
    known = new_ca()
    signing.secret(known)
    flags = _told(signing, signing.ca_issuer())
    program.issued("one")
    server = program.serve(*flags)
    chain, roots = secrets(program, server)
    assert roots == TrustBundle.of([known.pem]).pem
    assert stands_below(chain, roots)
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


def test_a_first_start_waits_for_nobody_who_signs(
    controllers: Service, signing: Signing, program: Program
) -> None:
    """It says in one sentence what lacks; one that is told to stop meanwhile leaves no request."""
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
