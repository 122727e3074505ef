"""The file in which DNS answers outlive a restart: what is wrong with it is said, and ends no server."""

import stat
from datetime import UTC, datetime
from pathlib import Path

from structlog.testing import capture_logs

from controller.dns_answers import ANSWERS_FILE, DnsAnswers
from mesh.names import IpAddress
from providers.dns.kept import LONG_DUE, Kept
from providers.dns.records import Question, QuestionState, RecordType

KEPT = Kept(
    {
        Question("db.test", RecordType.A): QuestionState(
            LONG_DUE, datetime(2026, 1, 2, tzinfo=UTC), (IpAddress("10.0.0.1"),)
        )
    }
)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    """By its owner alone; where there is no file there is nothing, and nothing to say."""
    answers = DnsAnswers(tmp_path)
    with capture_logs() as logs:
        assert answers.read() == Kept()
        answers.write(KEPT)
        assert answers.read() == KEPT
    assert logs == []
    assert stat.S_IMODE((tmp_path / ANSWERS_FILE).stat().st_mode) == 0o600


def test_what_cannot_be_read_or_written_is_said(tmp_path: Path) -> None:
    """A directory in the place of the file, and no directory for it."""
    (tmp_path / ANSWERS_FILE).mkdir()
    with capture_logs() as logs:
        assert DnsAnswers(tmp_path).read() == Kept()
        DnsAnswers(tmp_path / "gone").write(KEPT)
    assert [(each["log_level"], each["reason"]) for each in logs] == [
        ("error", f"{tmp_path / ANSWERS_FILE} cannot be read: Is a directory"),
        ("error", f"{tmp_path / 'gone' / ANSWERS_FILE} cannot be written: No such file or directory"),
    ]
