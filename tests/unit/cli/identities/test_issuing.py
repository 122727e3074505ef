"""Tests of issuing while another process holds the state directory."""

import contextlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import meshwright.cli.identities.issuing
from meshwright.admin.http.commands import ProxyRequest
from meshwright.cli.errors import IssuingError, ServerNotRunning
from meshwright.cli.identities.issuing import issue
from meshwright.controller.process.lock import hold_lock

REQUEST = ProxyRequest("u1", "shop", "default", None)


def test_command_waits_for_a_starting_server_that_holds_the_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server is asked repeatedly; when the lock is released, the command continues without a server."""
    with contextlib.ExitStack() as holding, ThreadPoolExecutor(1) as executor:
        holding.enter_context(hold_lock(tmp_path))
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


def test_holder_of_the_directory_that_never_answers_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the wait the error names the process that holds the directory."""
    monkeypatch.setattr(meshwright.cli.identities.issuing, "START_SECONDS", 0.0)
    with (
        hold_lock(tmp_path),
        pytest.raises(IssuingError, match=r"in use by another meshwright \(process \d+\)"),
    ):
        issue(tmp_path, REQUEST, "cluster.local", tmp_path / "out")
