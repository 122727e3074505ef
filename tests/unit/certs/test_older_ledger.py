"""An older ledger that is put in the place of the newest: no revocation is forgotten silently."""

import shutil
from datetime import timedelta
from pathlib import Path

import pytest
import structlog.testing

from certs.custody import LEDGER_FILE, AuthorityWithLedger, opened, rebuilt
from certs.errors import RequestError, StateError
from certs.ledger.entry import LedgerEntry
from certs.ledger.mark import RevocationMark
from certs.ledger.sqlite import SqliteLedger
from certs.proxy import issue_proxy
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import TrustDomain
from tests.unit.certs.ledger.entries import START

DOMAIN = TrustDomain("mesh.example")
NAMES = tuple(ProxyName.parse(f"{each}.shop.market") for each in ("one", "two", "three"))
YEAR = timedelta(days=90)


def issue(found: AuthorityWithLedger, name: ProxyName) -> str:
    """Issue a certificate, and return its serial."""
    return issue_proxy(found.authority, found.ledger, name, YEAR, START).serial


@pytest.fixture
def restored(tmp_path: Path) -> Path:
    """Return a state directory whose ledger was replaced by a backup from before two revocations."""
    state = tmp_path / "state"
    with opened(state, DOMAIN, START) as found:
        serials = [issue(found, name) for name in NAMES]
        found.ledger.revoke(serials[0], START)
    shutil.copy(state / LEDGER_FILE, tmp_path / "backup")
    with opened(state, DOMAIN, START) as found:
        for serial in serials[1:]:
            found.ledger.revoke(serial, START)
    shutil.copy(tmp_path / "backup", state / LEDGER_FILE)
    return state


def states(state: Path) -> list[bool]:
    """Return which certificates are revoked, in the order of their names."""
    with SqliteLedger.open(state / LEDGER_FILE) as ledger:
        by_name: dict[str, LedgerEntry] = {each.common_name: each for each in ledger.entries()}
    return [by_name[str(name)].revoked_at is not None for name in NAMES]


def test_an_older_ledger_is_not_started_with(restored: Path) -> None:
    """The sentence says what was forgotten and every way out, and the next start says it again."""
    words = r"was replaced by an older one: it lacks 2 revocations.*restore the newest ledger, rebuild"
    for _ in range(2):
        with pytest.raises(StateError, match=words), opened(restored, DOMAIN, START):
            pass
    assert states(restored) == [True, False, False]


def test_the_newest_ledger_opens_again_and_again(tmp_path: Path) -> None:
    """The negative control: revocations by several processes, and backups that have forgotten none."""
    state = tmp_path / "state"
    for name in NAMES:
        with opened(state, DOMAIN, START) as found:
            serial = issue(found, name)
            found.ledger.revoke(serial, START)
            found.ledger.revoke(serial, START)
            shutil.copy(state / LEDGER_FILE, tmp_path / "backup")
        shutil.copy(tmp_path / "backup", state / LEDGER_FILE)
    assert states(state) == [True, True, True]
    assert RevocationMark(state / LEDGER_FILE).read() == 3


def test_the_newest_ledger_that_is_put_back_is_started_with(restored: Path, tmp_path: Path) -> None:
    """Nothing else is needed then."""
    with SqliteLedger.open(restored / LEDGER_FILE) as ledger:
        for each in ledger.entries():
            ledger.revoke(each.serial, START)
    with opened(restored, DOMAIN, START) as found:
        assert all(each.revoked_at for each in found.ledger.entries())


def test_an_older_ledger_is_accepted_by_removing_its_mark(restored: Path) -> None:
    """Whoever means it says so by hand; from then on the ledger is compared again."""
    mark = RevocationMark(restored / LEDGER_FILE)
    mark.path.unlink()
    with opened(restored, DOMAIN, START):
        pass
    assert (states(restored), mark.read()) == ([True, False, False], 1)


def test_an_older_ledger_is_rebuilt_or_begun_anew(restored: Path) -> None:
    """As one that was lost: the mark goes with it, and the new ledger has its own."""
    with SqliteLedger.open(restored / LEDGER_FILE) as ledger:
        serial = ledger.first() or ""
    with opened(restored, DOMAIN, START, rebuild=serial) as found:
        assert found.rebuilding is not None
        assert found.ledger.entries() == ()
    with opened(restored, DOMAIN, START, begin_anew=serial) as found:
        assert found.ledger.entries() == ()
        issue(found, NAMES[0])
    with opened(restored, DOMAIN, START) as found:
        assert len(found.ledger.entries()) == 1
    assert (restored / f"{LEDGER_FILE}.lost-1").exists()
    assert (restored / f"{LEDGER_FILE}.lost-1.revocations").exists()
    with pytest.raises(RequestError, match="no certificate is confirmed"):
        rebuilt(restored)


def test_a_mark_that_is_damaged_is_named(restored: Path) -> None:
    """It is not taken for none: then an older ledger would pass."""
    mark = RevocationMark(restored / LEDGER_FILE)
    mark.path.write_text("many\n")
    with (
        pytest.raises(
            StateError,
            match="is damaged: it must contain the number of revoked certificates\\. If the ledger in the "
            "same directory is the newest one, remove the file",
        ),
        opened(restored, DOMAIN, START),
    ):
        pass


def test_no_process_lowers_the_mark(tmp_path: Path) -> None:
    """One that counted before another revoked notes nothing."""
    mark = RevocationMark(tmp_path / LEDGER_FILE)
    for count in (3, 1, 2):
        mark.raise_to(count)
    assert mark.read() == 3
    assert mark.path.stat().st_mode & 0o777 == 0o600


def test_a_revocation_holds_where_the_mark_cannot_be_written(tmp_path: Path) -> None:
    """The revocation is in the ledger; a later one notes both."""
    state = tmp_path / "state"
    with opened(state, DOMAIN, START) as found:
        mark = RevocationMark(state / LEDGER_FILE)
        mark.path.unlink()
        mark.path.mkdir()
        serial = issue(found, NAMES[0])
        assert found.ledger.revoke(serial, START).revoked_at == START
        mark.path.rmdir()
        found.ledger.revoke(issue(found, NAMES[1]), START)
    assert mark.read() == 2


def test_the_mark_is_made_with_the_ledger(tmp_path: Path) -> None:
    """It takes no room later, when the disk may be full."""
    with SqliteLedger.open(tmp_path / LEDGER_FILE):
        mark = RevocationMark(tmp_path / LEDGER_FILE)
        size = mark.path.stat().st_size
        mark.raise_to(10**19)
    assert (mark.read(), mark.path.stat().st_size) == (10**19, size)


def test_a_mark_that_cannot_be_written_is_logged_once(tmp_path: Path) -> None:
    """The revocation stands; that a later start cannot compare must be known."""
    mark = RevocationMark(tmp_path / LEDGER_FILE)
    mark.path.mkdir()
    with structlog.testing.capture_logs() as lines:
        for _ in range(3):
            mark.raise_to(1)
    assert [(each["event"], each["log_level"], each["count"]) for each in lines] == [
        ("revocation count cannot be written", "error", 1)
    ]
