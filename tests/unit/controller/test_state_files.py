"""Tests of state files: content across restarts, and failures that are logged and end no server."""

import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from catalog.policy.units import UnitId
from certs.state.privacy import exposures
from meshwright.controller.kubernetes.cluster import ANSWER
from meshwright.controller.state_files import DNS_ANSWERS, VERDICTS, Form, StateFile
from meshwright.delivery.quarantine.verdicts import Verdict
from meshwright.kube.reflector.object_cache import Item
from meshwright.kube.resource import Resource
from meshwright.mesh.names import IpAddress
from meshwright.providers.dns.last_answers import LONG_DUE, SavedAnswers
from meshwright.providers.dns.records import Question, QuestionState, RecordType
from meshwright.providers.kubernetes import last_state as kept
from meshwright.providers.kubernetes.identity import Identity
from xds.cache import NodeKey
from xds.protocol.resources.resource import ROUTE, ResourceName

THEN = datetime(2026, 1, 2, tzinfo=UTC)
QUESTION = Question("db.test", RecordType.A)
ANSWERS = SavedAnswers({QUESTION: QuestionState(LONG_DUE, THEN, (IpAddress("10.0.0.1"),))})
VERDICT = Verdict(NodeKey("u1.shop.default"), UnitId("a"), ROUTE, ResourceName("r"), "about", "no", 1, THEN)

PODS = Resource("", "v1", "pods", "Pod")
CLUSTER = kept.SavedState(
    Identity("east"), (kept.SavedWatch(PODS, None, THEN, {("shop", "a"): Item("7", "{}")}),)
)

FORMS = pytest.mark.parametrize(
    ("form", "value"),
    [(DNS_ANSWERS, ANSWERS), (VERDICTS, (VERDICT,)), (ANSWER, CLUSTER)],
    ids=["answers", "verdicts", "cluster"],
)


@FORMS
def test_saved_state_is_loaded_after_a_restart(form: Form[Any], value: object, tmp_path: Path) -> None:
    """The file has mode 0600; a missing file is an empty state without a log line."""
    with capture_logs() as logs:
        assert StateFile(tmp_path, form).load() == form.nothing
        StateFile(tmp_path, form).keep(value)
        assert StateFile(tmp_path, form).load() == value
    assert logs == []
    assert stat.S_IMODE((tmp_path / form.file).stat().st_mode) == 0o600


@FORMS
def test_state_file_readable_by_others_is_an_exposure(form: Form[Any], value: object, tmp_path: Path) -> None:
    """The check of the state directory's privacy includes these files."""
    tmp_path.chmod(0o700)
    StateFile(tmp_path, form).keep(value)
    (tmp_path / form.file).chmod(0o640)
    assert [exposure.partition(" can be ")[0] for exposure in exposures(tmp_path)] == [
        str(tmp_path / form.file)
    ]


@FORMS
@pytest.mark.parametrize("content", [b"", b"{}", b"\0", b'{"version": 2}', b"[1"])
def test_damaged_state_file_is_ignored_and_replaced(
    form: Form[Any], value: object, content: bytes, tmp_path: Path
) -> None:
    """The log has the consequence of the loss, and the next save replaces the file."""
    (tmp_path / form.file).write_bytes(content)
    file = StateFile(tmp_path, form)
    with capture_logs() as logs:
        assert file.load() == form.nothing
        file.keep(value)
        assert file.load() == value
    damaged = f"{tmp_path / form.file} is damaged, or of another version: "
    assert [(log["log_level"], log["event"]) for log in logs] == [("error", form.not_read)]
    assert logs[0]["reason"].startswith(damaged)


@FORMS
def test_unreadable_or_unwritable_state_file_is_logged_once(
    form: Form[Any], value: object, tmp_path: Path
) -> None:
    """A failure is logged once until a save succeeds, and again after that."""
    (tmp_path / form.file).mkdir()
    gone = StateFile(tmp_path / "gone", form)
    with capture_logs() as logs:
        assert StateFile(tmp_path, form).load() == form.nothing
        gone.keep(value)
        gone.keep(value)
        (tmp_path / "gone").mkdir()
        gone.keep(value)
        (tmp_path / "gone" / form.file).unlink()
        (tmp_path / "gone").rmdir()
        gone.keep(value)
    missing = f"{tmp_path / 'gone' / form.file} cannot be written: No such file or directory"
    assert [(log["event"], log["reason"]) for log in logs] == [
        (form.not_read, f"{tmp_path / form.file} cannot be read: Is a directory"),
        (form.not_kept, missing),
        (form.not_kept, missing),
    ]
