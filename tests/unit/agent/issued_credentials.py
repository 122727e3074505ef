"""Certificates for tests of the agent, issued by a CA that is created for each test."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from certs.issuers.authority import CertificateAuthority
from certs.ledger.sqlite import SqliteLedger
from certs.proxy import issue_proxy
from certs.server import ads_server_certificate
from certs.state.pair_files import PairFiles
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import TrustDomain
from tests.tools.own_authority import own_authority


def authority(state: Path) -> CertificateAuthority:
    """Open the CA of a state directory."""
    return own_authority(state, TrustDomain("cluster.local"), datetime.now(UTC))


def write_credentials(state: Path, out: Path, name: str = "u.s.n") -> str:
    """Write a proxy's three files; return the serial."""
    out.mkdir(exist_ok=True)
    issuer = authority(state)
    with SqliteLedger.open(state / "ledger.db") as ledger:
        now = datetime.now(UTC)
        made = issue_proxy(issuer, ledger, ProxyName.parse(name), timedelta(days=1), now)
    (out / "proxy.key").touch(mode=0o600)
    (out / "proxy.pem").write_bytes(made.chain_pem)
    (out / "proxy.key").write_bytes(made.key.reveal())
    (out / "ca.pem").write_bytes(issuer.trust_bundle())
    return made.serial


def write_server_certificate(state: Path) -> Path:
    """Write a server's certificate with its key in one file."""
    made = ads_server_certificate(authority(state), PairFiles(state), datetime.now(UTC))
    path = state / "server.pem"
    path.write_bytes(made.chain_pem + made.key.reveal())
    return path
