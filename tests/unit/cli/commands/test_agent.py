"""Tests of the arguments of `meshwright agent` and `meshwright intercept`, without running either."""

import pytest

from meshwright.cli.main import app
from tests.tools.command_runner import CliRunner

TOKEN = f"0123456789ab.{'s' * 43}.{'0' * 64}"
CREDENTIALS = ("agent", "--credentials", "none", "--ads", "127.0.0.1:1")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("agent",),
            (
                "the agent needs its credentials and the control plane's address: give --credentials DIR and "
                "--ads HOST:PORT, or set MESHWRIGHT_CREDENTIALS and MESHWRIGHT_ADS"
            ),
        ),
        (
            ("agent", "--credentials", "x", "--ads", "y"),
            "--ads is 'y': must be HOST:PORT, for example 127.0.0.1:15128",
        ),
        (
            ("agent", "--credentials", "x", "--ads", "a:1,b"),
            "--ads is 'a:1,b': entry 'b' must be HOST:PORT, for example 127.0.0.1:15128",
        ),
        (
            ("agent", "--credentials", "x", "--ads", "a:1,a:1"),
            "--ads is 'a:1,a:1': has a:1 twice: give each server once",
        ),
        (
            (*CREDENTIALS, "--enrol", "a:1,b", "--join-token", "t"),
            "--enrol is 'a:1,b': entry 'b' must be HOST:PORT, for example 127.0.0.1:15130",
        ),
        (
            (*CREDENTIALS, "--renewal", "a:1,"),
            "--renewal is 'a:1,': entry '' must be HOST:PORT, for example 127.0.0.1:15131",
        ),
        (("bootstrap", "--credentials", "x", "--ads", "a:1,b"), "x/proxy.key does not exist"),
        (("agent", "check", "--ads", "a:1,b"), "--ads is 'a:1,b': entry 'b' must be HOST:PORT"),
        ((*CREDENTIALS, "--admin", "::1:1"), "--admin is '::1:1': must be HOST:PORT, for example"),
        (
            (*CREDENTIALS, "--trust-domain", "Cluster"),
            "--trust-domain is 'Cluster': must be a DNS name in lower case",
        ),
        (
            (*CREDENTIALS, "--enrol", "a:1"),
            "--enrol needs exactly one of --join-token and --kubernetes-token",
        ),
        (
            (*CREDENTIALS, "--join-token", "t"),
            "--enrol needs exactly one of --join-token and --kubernetes-token",
        ),
        (
            (*CREDENTIALS, "--enrol", "a:1", "--kubernetes-token", "t"),
            "--kubernetes-token needs --ca, because such a token does not identify the enrolment server",
        ),
        (
            (*CREDENTIALS, "--enrol", "a:1", "--join-token", TOKEN),
            "--join-token is a token, but must be the path of a file",
        ),
        (
            (*CREDENTIALS, "--enrol", "a:1", "--kubernetes-token", "eyJhbGciOi.eyJhdWQiOl.c3Nz", "--ca", "c"),
            "--kubernetes-token is a token, but must be the path of a file",
        ),
        (
            (*CREDENTIALS, "--ca", "c"),
            "--ca requires --enrol: add --enrol and a token, or remove --ca",
        ),
        ((*CREDENTIALS, "--renewal", "x"), "--renewal is 'x': must be HOST:PORT"),
        ((*CREDENTIALS, "--drain-seconds", "60"), "must be later than its drain time of 60 s"),
        ((*CREDENTIALS, "--termination-least-seconds", "50"), "s) must not be longer than the maximum ("),
        ((*CREDENTIALS, "--protocol", "x"), "--protocol is 'x': must be delta or sotw"),
        (("agent", "request", "GET", "clusters"), "the path is 'clusters': must begin with /"),
        (("agent", "request", "GET", "/", "--admin", "127.0.0.1:1"), "at 127.0.0.1:1 does not answer"),
        (("agent", "request", "GET", "/", "--run", "/none"), "at /none/admin.sock does not answer"),
        (
            (*CREDENTIALS, "--run", f"/{'r' * 96}"),
            "admin.sock, would have a path of 108 bytes, and may have 107: give a shorter directory",
        ),
        (("agent", "wait", "--seconds", "0", "--status", "127.0.0.1:1"), "at 127.0.0.1:1 does not answer"),
        (("agent", "wait", "--status", "here"), "--status is 'here': must be HOST:PORT"),
        (("intercept", "--dry-run", "--check"), "exclude each other"),
        (("intercept", "--probe", "--clean"), "--dry-run, --check, --probe and --clean exclude each other"),
        (("intercept", "--probe", "--no-inbound"), "so a test is not possible"),
        (("intercept", "--probe", "--exclude-inbound-ports", "1-65535"), "every inbound port is excluded"),
        (
            ("intercept", "--include-inbound-ports", "http"),
            "'http' is not a port; must be a port or a range, for example 80 or 8000-8010",
        ),
        (
            ("intercept", "--exclude-outbound-ports", "*"),
            "is '*', which excludes all traffic; to remove the interception, use --clean",
        ),
        (("intercept", "--no-inbound", "--no-outbound"), "neither inbound nor outbound"),
    ],
)
def test_invalid_agent_arguments_give_one_sentence(
    arguments: tuple[str, ...], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error is one line on standard error, without a traceback and without the token."""
    for name in ("MESHWRIGHT_CREDENTIALS", "MESHWRIGHT_ADS"):
        monkeypatch.delenv(name, raising=False)
    done = CliRunner().invoke(app, arguments)
    assert (done.exit_code, done.stdout) == (1 if "wait" in arguments and "here" not in arguments else 2, "")
    assert done.stderr.startswith("meshwright: ")
    assert sentence in done.stderr
    assert "sss" not in done.stderr
    assert "c3Nz" not in done.stderr
    assert done.stderr.count("\n") == 1
