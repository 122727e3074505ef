"""Tests of exec plug-ins, as real programs."""

import asyncio
import json
import tracemalloc
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from meshwright.kube.connection.access import Plugin
from meshwright.kube.connection.exec_plugin import Credential, ask, credential
from meshwright.kube.errors import ConfigError, Reason
from tests.tools.child_processes import gone

V1 = "client.authentication.k8s.io/v1"
SECRET = "s3cr3t-t0k3n"


def plugin(folder: Path, script: str, **more: Any) -> Plugin:
    """Write a plug-in as a shell script."""
    file = folder / "login"
    file.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
    file.chmod(0o700)
    return Plugin(V1, str(file), **more)


def gives(**status: Any) -> str:
    """Return the output of a plug-in with this status."""
    return json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": status})


async def test_plugin_gets_arguments_environment_and_cluster(tmp_path: Path) -> None:
    """The plug-in inherits our environment and has the request in KUBERNETES_EXEC_INFO.

    It gets no terminal and no input.
    """
    path = tmp_path / "told"
    script = f"""test -t 0 && exit 9
        read line && exit 8
        echo "$1 $A $KUBERNETES_EXEC_INFO" > {path}
        test -n "$PATH" || exit 7
        echo '{gives(token=SECRET)}'"""
    made = plugin(
        tmp_path, script, arguments=("x y",), environment=(("A", "b"),), cluster={"server": "https://s"}
    )
    assert await ask(made) == Credential(SECRET)
    words = path.read_text("utf-8")
    assert words.startswith("x y b {")
    assert json.loads(words.removeprefix("x y b ")) == {
        "apiVersion": V1,
        "kind": "ExecCredential",
        "spec": {"interactive": False, "cluster": {"server": "https://s"}},
    }


def test_token_certificate_and_expiry_are_read() -> None:
    """The credential's representation does not show the token."""
    text = gives(
        token="t", clientCertificateData="C", clientKeyData="K", expirationTimestamp="2030-01-31T12:00:00Z"
    )
    expires = datetime(2030, 1, 31, 12, tzinfo=UTC)
    result = credential(Plugin(V1, "login"), text.encode())
    assert result == Credential("t", b"C", b"K", expires)
    assert "token" not in repr(result)


WRONG = [
    ("hello", "did not print an ExecCredential: the output must be one JSON object"),
    ("[]", "did not print an ExecCredential: the output must be one JSON object"),
    ("{}", f"printed None of None: must be an ExecCredential of {V1}"),
    (
        gives(token="x").replace(V1, f"{V1}beta1"),
        f"printed ExecCredential of {V1}beta1: must be an ExecCredential of {V1}",
    ),
    (json.dumps({"apiVersion": V1, "kind": "ExecCredential"}), "printed an ExecCredential without status"),
    (gives(), "returned neither a token nor a certificate"),
    (gives(token=5), "returned a token that is not text"),
    (
        gives(token=SECRET, clientKeyData=SECRET),
        "returned a certificate without a key, or a key without a certificate",
    ),
    (
        gives(token=SECRET, expirationTimestamp="soon"),
        "returned the expirationTimestamp 'soon': must have the form 2030-01-31T12:00:00Z",
    ),
    (
        gives(token=SECRET, expirationTimestamp="2030-01-31"),
        "returned the expirationTimestamp '2030-01-31': must have the form 2030-01-31T12:00:00Z",
    ),
]


@pytest.mark.parametrize(("output", "wrong"), WRONG)
def test_wrong_output_is_an_error_without_the_credential(output: str, wrong: str) -> None:
    """The message describes the fault only."""
    with pytest.raises(ConfigError) as caught:
        credential(Plugin(V1, "login"), output.encode())
    assert (str(caught.value), caught.value.reason) == (f"exec plug-in login {wrong}", Reason.CREDENTIALS)
    assert SECRET not in str(caught.value)


async def test_failing_plugin_is_reported_with_its_last_line_or_install_hint(tmp_path: Path) -> None:
    """A failed, a missing and a non-executable plug-in have different messages."""
    made = plugin(tmp_path, f"echo '{gives(token=SECRET)}'; echo a >&2; echo 'please log in' >&2; exit 3")
    with pytest.raises(
        ConfigError, match=f"exec plug-in {made.command} failed with exit status 3: please log in$"
    ):
        await ask(made)
    with pytest.raises(ConfigError, match=r"exec plug-in /nowhere/login does not exist: get it from there$"):
        await ask(Plugin(V1, "/nowhere/login", hint="get it from there"))
    (tmp_path / "text").write_text("x", "utf-8")
    with pytest.raises(ConfigError, match=f"exec plug-in {tmp_path}/text cannot be run: Permission denied$"):
        await ask(Plugin(V1, f"{tmp_path}/text"))


async def test_excessive_output_is_discarded(tmp_path: Path) -> None:
    """The output is read to its end with bounded memory."""
    made = plugin(tmp_path, "head -c 50000000 /dev/zero; head -c 50000000 /dev/zero >&2")
    tracemalloc.start()
    with pytest.raises(ConfigError, match="did not print an ExecCredential"):
        await ask(made)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 10_000_000


async def test_plugin_that_does_not_finish_is_killed(tmp_path: Path) -> None:
    """The error names the time limit."""
    pid = tmp_path / "pid"
    made = plugin(tmp_path, f"echo $$ > {pid}; exec sleep 1000")
    with pytest.raises(ConfigError, match=r"did not finish within 0\.5 s$"):
        await ask(made, patience=0.5)
    assert not Path(f"/proc/{pid.read_text().strip()}").exists()


async def test_program_of_a_wrapper_that_does_not_finish_is_killed(tmp_path: Path) -> None:
    """Both processes end at the time limit, and the error does not wait for the program."""
    pid = tmp_path / "pid"
    made = plugin(tmp_path, f"sleep 1000 & echo $! > {pid}.new; mv {pid}.new {pid}; wait")
    with pytest.raises(ConfigError, match=r"did not finish within 0\.5 s$"):
        async with asyncio.timeout(30):
            await ask(made, patience=0.5)
    await gone(int(pid.read_text()))
