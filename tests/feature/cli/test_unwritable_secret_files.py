"""Tests of tokens and certificates that can be created only once: their file must be writable first."""

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
    result: list[dict[str, object]] = json.loads(done.stdout)["join_tokens"]
    return result


def _create(run: Run, *arguments: str) -> Done:
    return run("certs", "token", "create", "--state", "state", *SERVICE, *arguments)


def _issue(run: Run, out: str, uuid: str = "u") -> Done:
    return run("certs", "issue-proxy", "--state", "state", "--uuid", uuid, *SERVICE, "--out", out)


def _certificates(run: Run) -> int:
    done = run("certs", "list", "--state", "state", "--json")
    return len(json.loads(done.stdout)["proxy_certificates"])


def test_token_is_created_only_if_its_file_can_be(run: Run, tmp_path: Path) -> None:
    """The token's file is private. If the file cannot be created there is no token, and old files stay."""
    assert _create(run, "--out", "token").returncode == 0
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600
    before = (tmp_path / "token").read_text()
    for out, why in (
        ("token", "File exists"),
        ("no/token", "No such file or directory"),
        ("state", "File exists"),
    ):
        done = _create(run, "--out", out)
        text = (
            f"meshwright: cannot write {out}: {why}; the token was not created: give a new file with --out\n"
        )
        assert (done.returncode, done.stdout, done.stderr) == (2, "", text)
    assert (tmp_path / "token").read_text() == before
    assert [token["id"] for token in _tokens(run)] == [before.partition(".")[0]]


def test_token_that_could_not_be_written_is_named_for_revocation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full disk the error names the token's id, so that it can be revoked, and the file is removed."""
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
    text = f"File too large; the secret of token {made['id']} is lost: revoke the token with {command}"
    assert str(failed.value) == f"cannot write {out}: {text}"
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("--valid-for", "1s"), 2),
        (("--uuid", "u", "--mesh", "mesh"), 1),
        (("--mesh", "none", "--uuid", "u"), 2),
    ],
)
def test_refused_token_leaves_no_file(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], status: int
) -> None:
    """The file of a refused token is removed, so that the next token can use its name."""
    (tmp_path / "mesh").mkdir()
    assert _create(run, *arguments, "--out", "token").returncode == status
    assert not (tmp_path / "token").exists()
    assert _create(run, "--out", "token").returncode == 0


@pytest.mark.parametrize("spoil", ["file", "below", "key"])
def test_no_certificate_is_issued_into_an_unwritable_place(run: Run, tmp_path: Path, spoil: str) -> None:
    """If the directory or the key's file cannot be written, no certificate is issued."""
    assert _issue(run, "first").returncode == 0
    (tmp_path / "file").touch()
    (tmp_path / "key" / "proxy.key").mkdir(parents=True)
    out = {"file": "file", "below": "file/new", "key": "key"}[spoil]
    done = _issue(run, out, "v")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"meshwright: cannot write to {out}: ")
    assert done.stderr.endswith("; the certificate was not issued: give another directory with --out\n")
    assert _certificates(run) == 1


def test_refused_certificate_leaves_no_directory(run: Run, tmp_path: Path) -> None:
    """A refused request creates no directory and leaves an existing one empty."""
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
def test_zero_duration_is_refused(run: Run, command: tuple[str, ...], text: str) -> None:
    """A duration of zero has a valid form, so the message asks for more than 0."""
    done = run(*command, text, "--state", "state")
    message = f"meshwright: {command[-1]} is {text!r}: must be more than 0, for example 24h\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)


def test_duration_with_too_many_digits_is_refused(run: Run) -> None:
    """The limit is 9 digits. 5000 digits, more than Python converts, give the same message."""
    for digits in ("9" * 10, "9" * 5000):
        done = _create(run, "--valid-for", f"{digits}s")
        text = f"meshwright: --valid-for is '{f'{digits}s'[:40]}': must be less than 1000000000 of its unit"
        assert (done.returncode, done.stderr) == (2, f"{text}, for example 24h\n")


@pytest.mark.parametrize("text", ["", "s", "1", "-1s", "1.5h", "1 h", "1w", "\u0661s", "1h\n"])
def test_malformed_duration_is_refused_with_an_example(run: Run, text: str) -> None:
    """The message explains the form. Digits other than 0 to 9 are not accepted."""
    done = _create(run, f"--valid-for={text}")
    assert "must be a number followed by s, m, h or d, for example 24h" in done.stderr
    assert done.returncode == 2
