"""Certificates for benchmarks: for a server, for all proxies of a load generator, or for each proxy."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from certs.authority_files.store import AuthorityFiles
from certs.custody import LEDGER_FILE
from certs.ledger.sqlite import SqliteLedger
from certs.proxy import issue_proxy
from certs.roots.authority import ChangingAuthority
from certs.server import ads_server_certificate
from certs.state.pair_files import PairFiles
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import TrustDomain


def issue(directory: Path) -> None:
    """Write `ca.pem`, `s.pem`, `s.key` (server, for 127.0.0.1), `c.pem` and `c.key` (client)."""
    now = datetime.now(UTC)
    state = directory / "state"
    authority = ChangingAuthority(AuthorityFiles(state), TrustDomain("cluster.local"), now)
    server = ads_server_certificate(authority, PairFiles(state), now)
    with SqliteLedger.open(state / "ledger.db") as ledger:
        proxy = issue_proxy(authority, ledger, ProxyName.parse("u1.load.ns"), timedelta(days=1), now)
    files = {
        "ca.pem": authority.trust_bundle(),
        "s.pem": server.chain_pem,
        "s.key": server.key.reveal(),
        "c.pem": proxy.chain_pem,
        "c.key": proxy.key.reveal(),
    }
    _write(directory, files)


def issue_each(state: Path, directory: Path, names: Iterable[str]) -> None:
    """Write `ca.pem`, and `NAME.pem` and `NAME.key` for each proxy; the ledger of `state` has them all."""
    now = datetime.now(UTC)
    authority = ChangingAuthority(AuthorityFiles(state), TrustDomain("cluster.local"), now)
    _write(directory, {"ca.pem": authority.trust_bundle()})
    with SqliteLedger.open(state / LEDGER_FILE) as ledger:
        for name in names:
            proxy = issue_proxy(authority, ledger, ProxyName.parse(name), timedelta(days=1), now)
            _write(directory, {f"{name}.pem": proxy.chain_pem, f"{name}.key": proxy.key.reveal()})


def _write(directory: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        path = directory / name
        path.touch(mode=0o600)
        path.write_bytes(content)
