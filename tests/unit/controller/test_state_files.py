"""Files in which things outlive a restart: what is wrong with one is said, and ends no server."""

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
def test_what_was_kept_is_there_after_a_restart(form: Form[Any], value: object, tmp_path: Path) -> None:
    """By its owner alone; where there is no file there is nothing, and nothing to say."""
    with capture_logs() as logs:
        assert StateFile(tmp_path, form).load() == form.nothing
        StateFile(tmp_path, form).keep(value)
        assert StateFile(tmp_path, form).load() == value
    assert logs == []
    assert stat.S_IMODE((tmp_path / form.file).stat().st_mode) == 0o600


@FORMS
def test_a_file_that_others_can_read_is_one_of_ours(form: Form[Any], value: object, tmp_path: Path) -> None:
    """Whoever looks whether the state directory is private knows it."""
    tmp_path.chmod(0o700)
    StateFile(tmp_path, form).keep(value)
    (tmp_path / form.file).chmod(0o640)
    assert [each.partition(" can be ")[0] for each in exposures(tmp_path)] == [str(tmp_path / form.file)]


@FORMS
@pytest.mark.parametrize("content", [b"", b"{}", b"\0", b'{"version": 2}', b"[1"])
def test_of_a_damaged_file_nothing_is_used(
    form: Form[Any], value: object, content: bytes, tmp_path: Path
) -> None:
    """It is said what that costs, and the next thing that is kept takes its place."""
    (tmp_path / form.file).write_bytes(content)
    file = StateFile(tmp_path, form)
    with capture_logs() as logs:
        assert file.load() == form.nothing
        file.keep(value)
        assert file.load() == value
    damaged = f"{tmp_path / form.file} is damaged, or of another version: "
    assert [(each["log_level"], each["event"]) for each in logs] == [("error", form.not_read)]
    assert logs[0]["reason"].startswith(damaged)


@FORMS
def test_what_cannot_be_read_or_written_is_said(form: Form[Any], value: object, tmp_path: Path) -> None:
    """A directory in the place of the file, and no directory for it: once until it works again."""
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
    assert [(each["event"], each["reason"]) for each in logs] == [
        (form.not_read, f"{tmp_path / form.file} cannot be read: Is a directory"),
        (form.not_kept, missing),
        (form.not_kept, missing),
    ]
