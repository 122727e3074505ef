"""What is made once and cannot be had again: a place for it is there before it is made."""

import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, cast

import pytest

from meshwright.cli.errors import IssuingError
from meshwright.cli.identities import tokens
from meshwright.enrolment.tokens import TokenRequest
from tests.tools.forked_cli import Done
from tests.tools.volumes import short_files

Run = Callable[..., Done]
SERVICE = ("--service", "s", "--namespace", "n")


def _tokens(run: Run) -> list[dict[str, object]]:
    done = run("certs", "token", "list", "--state", "state", "--json")
    found: list[dict[str, object]] = json.loads(done.stdout)["join_tokens"]
    return found


def _create(run: Run, *arguments: str) -> Done:
    return run("certs", "token", "create", "--state", "state", *SERVICE, *arguments)


def _issue(run: Run, out: str, uuid: str = "u") -> Done:
    return run("certs", "issue-proxy", "--state", "state", "--uuid", uuid, *SERVICE, "--out", out)


def _certificates(run: Run) -> int:
    done = run("certs", "list", "--state", "state", "--json")
    return len(json.loads(done.stdout)["proxy_certificates"])


def test_a_token_has_its_file_before_it_is_made(run: Run, tmp_path: Path) -> None:
    """Its file is private; where it cannot be made there is no token, and what stood there stays."""
    assert _create(run, "--out", "token").returncode == 0
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600
    before = (tmp_path / "token").read_text()
    for out, why in (
        ("token", "File exists"),
        ("no/token", "No such file or directory"),
        ("state", "File exists"),
    ):
        done = _create(run, "--out", out)
        said = f"meshwright: cannot write {out}: {why}; no token was created: give a new file with --out\n"
        assert (done.returncode, done.stdout, done.stderr) == (2, "", said)
    assert (tmp_path / "token").read_text() == before
    assert [each["id"] for each in _tokens(run)] == [before.partition(".")[0]]


def test_a_token_whose_file_has_no_room_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is made then: whoever asked for it can revoke it. Nothing stays that looks like one, or tells it."""
    put, full = tokens._put, ExitStack()

    def put_in_vain(out: Path | None, file: IO[str] | None, token: str) -> dict[str, str]:
        full.enter_context(short_files(10))
        return put(out, file, token)

    monkeypatch.setattr(tokens, "_put", put_in_vain)
    out, state = tmp_path / "token", tmp_path / "state"
    with pytest.raises(IssuingError) as failed, full:
        tokens.create(state, TokenRequest("s", "n"), "cluster.local", out)
    (made,) = cast("dict[str, Any]", tokens.listed(state, "cluster.local"))["join_tokens"]
    command = f"`meshwright certs token revoke {made['id']}`"
    said = f"File too large; the secret of token {made['id']} is lost: revoke the token with {command}"
    assert str(failed.value) == f"cannot write {out}: {said}"
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("--valid-for", "1s"), 2),
        (("--uuid", "u", "--mesh", "mesh"), 1),
        (("--mesh", "none", "--uuid", "u"), 2),
    ],
)
def test_a_token_that_is_not_made_leaves_no_file(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], status: int
) -> None:
    """The next one may have the name."""
    (tmp_path / "mesh").mkdir()
    assert _create(run, *arguments, "--out", "token").returncode == status
    assert not (tmp_path / "token").exists()
    assert _create(run, "--out", "token").returncode == 0


@pytest.mark.parametrize("spoil", ["file", "below", "key"])
def test_no_certificate_is_issued_that_nobody_can_have(run: Run, tmp_path: Path, spoil: str) -> None:
    """Its directory is a file, or below one, or the key's place is a directory."""
    assert _issue(run, "first").returncode == 0
    (tmp_path / "file").touch()
    (tmp_path / "key" / "proxy.key").mkdir(parents=True)
    out = {"file": "file", "below": "file/new", "key": "key"}[spoil]
    done = _issue(run, out, "v")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"meshwright: cannot write to {out}: ")
    assert done.stderr.endswith("; no certificate was issued: give another directory with --out\n")
    assert _certificates(run) == 1


def test_a_certificate_that_is_not_issued_leaves_no_directory(run: Run, tmp_path: Path) -> None:
    """One that was there before stays as it was."""
    (tmp_path / "there").mkdir()
    for out in ("there", "new"):
        assert _issue(run, out, "U!").returncode == 2
    assert not (tmp_path / "new").exists()
    assert list((tmp_path / "there").iterdir()) == []


@pytest.mark.parametrize("text", ["0s", "0m", "0h", "0d", "000s"])
@pytest.mark.parametrize(
    "command",
    [
        ("certs", "token", "create", *SERVICE, "--valid-for"),
        ("stat", "services", "--window"),
        ("tap", "n/s", "--for"),
        ("certs", "rotate-root", "--give-up-older-than"),
    ],
)
def test_no_time_at_all_is_said_to_be_none(run: Run, command: tuple[str, ...], text: str) -> None:
    """It is a number with a unit: what is wrong with it is how many."""
    done = run(*command, text, "--state", "state")
    said = f"meshwright: {command[-1]} is {text!r}: must be more than 0, for example 24h\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)


def test_a_time_of_too_many_digits_is_said_to_be_too_long(run: Run) -> None:
    """Also one of more digits than a number may have."""
    for digits in ("9" * 10, "9" * 5000):
        done = _create(run, "--valid-for", f"{digits}s")
        said = f"meshwright: --valid-for is '{f'{digits}s'[:40]}': must be less than 1000000000 of its unit"
        assert (done.returncode, done.stderr) == (2, f"{said}, for example 24h\n")


@pytest.mark.parametrize("text", ["", "s", "1", "-1s", "1.5h", "1 h", "1w", "\u0661s", "1h\n"])
def test_what_is_no_time_is_told_how_one_is_written(run: Run, text: str) -> None:
    """Digits that are others than 0 to 9 are none."""
    done = _create(run, f"--valid-for={text}")
    assert "must be a number followed by s, m, h or d, for example 24h" in done.stderr
    assert done.returncode == 2
