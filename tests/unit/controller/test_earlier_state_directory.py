"""Tests of a state directory of an earlier version: it opens, and all its contents apply.

`state_of_before/` was written before ledgers and key pairs had contracts. It has a CA, its first
certificates, the key pairs of a service and of the server, DNS answers and verdicts. The directory is never
rewritten, and its ledger is kept as SQL.
"""

import shutil
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from certs.custody import LEDGER_FILE, opened
from certs.ledger.entry import LedgerEntry, Stamp, StampDetail
from certs.lifetimes import ProxyTerms
from certs.manager import CertificateManager
from certs.server import ads_server_certificate
from certs.state.pair_files import PairFiles
from meshwright.controller.identity.proxy_certificates import without_server
from meshwright.controller.state_files import DNS_ANSWERS, VERDICTS, StateFile
from meshwright.delivery.quarantine.verdicts import Verdict
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import IpAddress, Namespace, ProxyUuid, ServiceAccountName, TrustDomain
from meshwright.providers.dns.records import Question, RecordType
from xds.cache import NodeKey
from xds.protocol.resources.resource import ROUTE, ResourceName

WRITTEN = Path(__file__).parent / "state_of_before"
THEN = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
DOMAIN = TrustDomain("mesh.example")
SIGNER = "acdc621a689f3f30b966de17df4a0b9c8ad3cdb0d542485cd9a4a3ae9d817bae"
"""The SHA-256 of the public key in ca.pem."""


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Return a copy of the directory with its ledger and the original modes."""
    state = tmp_path / "state"
    shutil.copytree(WRITTEN, state, ignore=shutil.ignore_patterns("*.sql"))
    for path in (state, *state.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
    connection = sqlite3.connect(state / LEDGER_FILE)
    connection.executescript((WRITTEN / "ledger.sql").read_text())
    connection.close()
    (state / LEDGER_FILE).chmod(0o600)
    return state


def _entry(serial: str, uuid: str, days: int, **stamps: datetime) -> LedgerEntry:
    at = THEN + timedelta(days=days)
    issued = LedgerEntry(serial, f"{uuid}.shop.default", ProxyUuid(uuid), at, at + 365 * DAY, signer=SIGNER)
    return issued.stamped({Stamp(item): StampDetail(moment) for item, moment in stamps.items()})


def test_earlier_ca_and_ledger_are_used_with_all_entries(state: Path) -> None:
    """The CA is not created anew, and each certificate keeps its state.

    A command without a server finds the same ledger.
    """
    with opened(state, DOMAIN, THEN + 4 * DAY) as authority:
        assert (authority.made, authority.ledger.authority()) == (False, authority.authority.fingerprint)
        assert authority.ledger.entries() == (
            _entry(
                "1f4eb31c807236cd2c7236f0152a5072dd5a2422",
                "u1",
                0,
                claimed_at=THEN + HOUR,
                admitted_at=THEN + 2 * HOUR,
            ),
            _entry("87aff9aee0f7fe5df39d57c3dd8a805d189326", "u1", 1, revoked_at=THEN + 3 * DAY),
            _entry("38252ad45a0f9b2f84fd25ac9e3da62d0f600363", "u2", 2, claimed_at=THEN + 3 * DAY),
        )
    with without_server(state, DOMAIN, lambda: THEN + 5 * DAY, ProxyTerms()) as issuing:
        assert issuing.revoke("38252ad45a0f9b2f84fd25ac9e3da62d0f600363").revoked_at == THEN + 5 * DAY


def test_earlier_key_pairs_are_used(state: Path) -> None:
    """The pairs are reused, so that no sidecar gets another key because of the server's version."""
    identity = ServiceIdentity(Namespace("default"), ServiceAccountName("shop"))
    with opened(state, DOMAIN, THEN) as authority, capture_logs() as logs:
        pairs = PairFiles(state)
        server = ads_server_certificate(authority.authority, pairs, THEN + HOUR, ("10.0.0.1",))
        manager = CertificateManager(authority.authority, pairs, DAY, lambda: 0.0)
        service = manager.ensure(identity, ("shop.default",), THEN + HOUR)
    assert (service.serial, server.serial, logs) == (
        "64c5b904b2a4264bf5fe43df051610377a97c482",
        "755bbef532ea5b64bb48fabf010a2df54e8a33ec",
        [],
    )


def test_earlier_answers_and_verdicts_are_loaded(state: Path) -> None:
    """The answers and verdicts apply.

    Names need no new query, and proxies are not offered rejected resources.
    """
    answers = StateFile(state, DNS_ANSWERS).load()
    known = answers.states[Question("db.example", RecordType.A)]
    assert (known.answered, known.addresses) == (THEN, (IpAddress("10.1.2.3"),))
    assert [str(key) for key in answers.in_force] == ["shop/db"]
    (verdict,) = StateFile(state, VERDICTS).load()
    assert verdict == Verdict(
        NodeKey("u1.shop.default"),
        verdict.unit,
        ROUTE,
        ResourceName("rds-inbound"),
        "rule 1 of TrafficTarget default/shop",
        "bad",
        2,
        THEN,
    )
