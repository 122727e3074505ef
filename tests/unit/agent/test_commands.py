"""`meshwright agent` and `intercept` as they are typed, as far as nothing runs."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app

CREDENTIALS = ("agent", "--credentials", "none", "--ads", "127.0.0.1:1")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("agent",), "--credentials and --ads are needed (or MESHWRIGHT_CREDENTIALS and MESHWRIGHT_ADS)"),
        (
            ("agent", "--credentials", "x", "--ads", "y"),
            "--ads is 'y': must be HOST:PORT, such as 127.0.0.1:15000",
        ),
        ((*CREDENTIALS, "--admin", "::1:1"), "--admin is '::1:1': must be HOST:PORT, such as"),
        ((*CREDENTIALS, "--drain-seconds", "60"), "must be later than its drain time of 60 s"),
        ((*CREDENTIALS, "--termination-least-seconds", "50"), "is impossible"),
        ((*CREDENTIALS, "--protocol", "x"), "'x' is not a valid AdsProtocol"),
        (("agent", "request", "GET", "clusters"), "the path is 'clusters': must begin with /"),
        (("agent", "request", "GET", "/", "--admin", "127.0.0.1:1"), "at 127.0.0.1:1 does not answer"),
        (("agent", "wait", "--seconds", "0", "--status", "127.0.0.1:1"), "at 127.0.0.1:1 does not answer"),
        (("agent", "wait", "--status", "here"), "--status is 'here': must be HOST:PORT"),
        ((*CREDENTIALS, "--run", "/proc/none"), "cannot use the directory /proc/none: "),
        (("intercept", "--dry-run", "--check"), "exclude each other"),
        (("intercept", "--include-inbound-ports", "http"), "'http' is no port"),
        (("intercept", "--exclude-outbound-ports", "*"), "that is to capture nothing, which is --clean"),
        (("intercept", "--no-inbound", "--no-outbound"), "neither inbound nor outbound"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(
    arguments: tuple[str, ...], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On standard error, with status 1, and without a traceback."""
    for name in ("MESHWRIGHT_CREDENTIALS", "MESHWRIGHT_ADS"):
        monkeypatch.delenv(name, raising=False)
    done = CliRunner().invoke(app, arguments)
    assert (done.exit_code, done.stdout) == (1 if "wait" in arguments and "here" not in arguments else 2, "")
    assert done.stderr.startswith("meshwright: ")
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_run_directory_that_others_can_write_to_ends_the_agent(tmp_path: Path) -> None:
    """They could put another bootstrap there."""
    run = tmp_path / "run"
    run.mkdir()
    (run / "bootstrap.json").write_text("{}")
    run.chmod(0o775)
    arguments = ("--run", str(run), "--status", "127.0.0.1:0", "--log-level", "error")
    done = CliRunner().invoke(
        app, ("agent", "--credentials", str(tmp_path), "--ads", "127.0.0.1:1", *arguments)
    )
    assert done.exit_code == 2
    assert f"{run} can be written by others (its mode is 0775): chmod 700 {run}\n" in done.stderr


def test_missing_credentials_end_the_agent(tmp_path: Path) -> None:
    """It does not wait for what nobody will bring."""
    run = ("--run", str(tmp_path / "run"), "--status", "127.0.0.1:0", "--log-level", "error")
    done = CliRunner().invoke(app, ("agent", "--credentials", str(tmp_path), "--ads", "127.0.0.1:1", *run))
    assert done.exit_code == 2
    assert f"cannot read {tmp_path}/proxy.key: No such file or directory" in done.stderr
