"""Issuing and revoking while somebody else has the state directory."""

import contextlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import meshwright.cli.identities.issuing
from meshwright.admin.http.commands import ProxyRequest
from meshwright.cli.errors import IssuingError, ServerNotRunning
from meshwright.cli.identities.issuing import issue
from meshwright.controller.process.lock import held

REQUEST = ProxyRequest("u1", "shop", "default", None)


def test_a_server_that_has_the_directory_but_does_not_answer_yet_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked again and again; here the one who has it goes, and the command goes on without."""
    with contextlib.ExitStack() as holding, ThreadPoolExecutor(1) as executor:
        holding.enter_context(held(tmp_path))
        asked: list[str] = []

        def nobody(state: Path, method: str, path: str, query: object = None, body: object = None) -> object:
            asked.append(path)
            if len(asked) == 3:
                holding.close()
            raise ServerNotRunning("nobody")

        monkeypatch.setattr(meshwright.cli.identities.issuing, "ask", nobody)
        issued = executor.submit(issue, tmp_path, REQUEST, "cluster.local", tmp_path / "out").result(60)
    assert issued.name == "u1.shop.default"
    assert asked == ["/certs/issue-proxy"] * 3
    assert (tmp_path / "out").is_dir()


def test_one_who_keeps_it_and_never_answers_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the end it is an error, as it was for a second server."""
    monkeypatch.setattr(meshwright.cli.identities.issuing, "START_SECONDS", 0.0)
    with held(tmp_path), pytest.raises(IssuingError, match=r"in use by another meshwright \(process \d+\)"):
        issue(tmp_path, REQUEST, "cluster.local", tmp_path / "out")
