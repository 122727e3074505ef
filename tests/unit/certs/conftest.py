"""Fixtures of the certificate tests: a moment, a CA and a ledger."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from certs.issuers.authority import CertificateAuthority
from certs.ledger.sqlite import SqliteLedger
from meshwright.mesh.names import TrustDomain
from tests.tools.own_authority import own_authority


@pytest.fixture
def now() -> datetime:
    """Return the moment at which every test starts."""
    return datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Return the path of a state directory that does not exist yet."""
    return tmp_path / "state"


@pytest.fixture
def authority(state: Path, now: datetime) -> CertificateAuthority:
    """Return the CA of a fresh state directory."""
    return own_authority(state, TrustDomain("mesh.example"), now)


@pytest.fixture
def ledger(state: Path) -> Iterator[SqliteLedger]:
    """Return an empty ledger."""
    with SqliteLedger.open(state / "ledger.db") as opened:
        yield opened
