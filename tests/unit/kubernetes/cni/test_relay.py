"""Tests of the CNI plug-in as a container runtime runs it: output and errors by the CNI specification."""

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from meshwright.kubernetes.cni import relay
from meshwright.kubernetes.cni.relay import CniRefusal, run
from tests.tools.deadline import HANG_SECONDS

RESULT = {"cniVersion": "1.0.0", "interfaces": [{"name": "eth0"}], "ips": [], "big": 2**60}
POD = "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=store-0;K8S_POD_UID=u-1"


def environment(command: str, **changes: str) -> dict[str, str]:
    """Return the environment that a runtime sets."""
    known = {"CNI_CONTAINERID": "c0", "CNI_NETNS": "/run/netns/n", "CNI_IFNAME": "eth0", "CNI_ARGS": POD}
    return {"CNI_COMMAND": command, "CNI_PATH": "/opt/cni/bin", **known, **changes}


def config(folder: Path, **changes: Any) -> bytes:
    """Return the configuration that a runtime writes to standard input."""
    known = {"cniVersion": "1.0.0", "name": "net", "type": "meshwright-cni", "prevResult": RESULT}
    return json.dumps({**known, "socket": f"{folder}/cni.sock", **changes}).encode()


@contextmanager
def answering(folder: Path, answer: bytes) -> Iterator[list[Any]]:
    """Answer one request in the daemon's place, and yield the list of received requests."""
    asked: list[Any] = []
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{folder}/cni.sock")
        server.listen(1)

        def one() -> None:
            made, _ = server.accept()
            with made:
                asked.append(json.loads(b"".join(iter(lambda: made.recv(9), b""))))
                made.sendall(answer)

        thread = threading.Thread(target=one)
        thread.start()
        yield asked
        thread.join(60)


def test_add_prints_the_previous_result_after_the_daemon_has_answered(tmp_path: Path) -> None:
    """ADD sends the pod's identity and network namespace to the daemon.

    It prints `prevResult` unchanged and writes no note.
    """
    with answering(tmp_path, b"{}") as asked:
        assert json.loads(run(environment("ADD"), config(tmp_path))) == RESULT
    assert asked == [
        {
            "command": "ADD",
            "container": "c0",
            "netns": "/run/netns/n",
            "namespace": "shop",
            "name": "store-0",
            "uid": "u-1",
        }
    ]
    assert not (tmp_path / relay.NOTES).exists()


def test_refusal_of_the_daemon_reaches_the_runtime(tmp_path: Path) -> None:
    """The error has the code, message and details of the daemon's answer."""
    with (
        answering(tmp_path, b'{"code": 11, "msg": "no", "details": "why"}'),
        pytest.raises(CniRefusal) as refused,
    ):
        run(environment("ADD"), config(tmp_path))
    assert (refused.value.code, refused.value.msg, refused.value.details) == (11, "no", "why")


@pytest.mark.parametrize("answer", [b"", b'{"code": 1', b"[]"])
def test_incomplete_answer_of_the_daemon_lets_the_pod_through_with_a_note(
    tmp_path: Path, answer: bytes
) -> None:
    """An empty, truncated or malformed answer counts as a daemon that died.

    ADD succeeds, and a note asks the next daemon for the pod's rules.
    """
    with answering(tmp_path, answer):
        assert json.loads(run(environment("ADD"), config(tmp_path))) == RESULT
    (note,) = (tmp_path / relay.NOTES).iterdir()
    assert note.name == "c0.json"


def test_without_a_daemon_each_pod_has_one_note_until_it_ends(tmp_path: Path) -> None:
    """A repeated ADD writes one note, and DEL removes the note.

    A container that is no pod has no note. CHECK fails with code 11, because the daemon does not answer.
    """
    for _ in range(2):
        assert json.loads(run(environment("ADD"), config(tmp_path / "run"))) == RESULT
    (note,) = (tmp_path / "run" / relay.NOTES).iterdir()
    assert json.loads(note.read_text())["name"] == "store-0"
    assert run(environment("DEL"), config(tmp_path / "run")) == ""
    assert run(environment("DEL"), config(tmp_path / "run")) == ""
    assert not note.exists()
    assert json.loads(run(environment("ADD", CNI_ARGS=""), config(tmp_path / "other"))) == RESULT
    assert not (tmp_path / "other").exists()
    with pytest.raises(
        CniRefusal, match=r"the daemon of meshwright-cni does not answer at .*cni\.sock"
    ) as refused:
        run(environment("CHECK"), config(tmp_path))
    assert refused.value.code == 11


def test_add_fails_if_no_note_can_be_written(tmp_path: Path) -> None:
    """A pod without a note would never get its rules, so ADD is refused with code 11.

    STATUS reports the same cause beforehand with code 50.
    """
    (tmp_path / "run").write_text("a file")
    with pytest.raises(CniRefusal, match="cannot be written") as refused:
        run(environment("ADD"), config(tmp_path / "run"))
    assert refused.value.code == 11
    assert run(environment("STATUS"), config(tmp_path)) == ""
    with pytest.raises(
        CniRefusal, match="notes for the daemon of meshwright-cni cannot be written to"
    ) as refused:
        run(environment("STATUS"), config(tmp_path / "run"))
    assert refused.value.code == 50


@pytest.mark.parametrize("given", [b"", b"{", b"[]", b'{"cniVersion": "9"}', b"[" * 100000])
def test_del_gc_and_version_never_fail(given: bytes) -> None:
    """DEL, GC and VERSION succeed with any standard input, because a pod must always be able to end."""
    for command in ("DEL", "GC"):
        assert run(environment(command), given) == ""
    assert run({"CNI_COMMAND": "DEL"}, given) == ""
    assert json.loads(run({"CNI_COMMAND": "VERSION"}, given)) == {
        "cniVersion": "1.1.0",
        "supportedVersions": ["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"],
    }


@pytest.mark.parametrize(
    ("variables", "changes", "code", "words"),
    [
        ({"CNI_COMMAND": "ENLARGE"}, {}, 4, "CNI_COMMAND is 'ENLARGE': must be ADD"),
        ({"CNI_CONTAINERID": "", "CNI_NETNS": ""}, {}, 4, "CNI_CONTAINERID, CNI_NETNS must be set for ADD"),
        ({"CNI_CONTAINERID": "../x"}, {}, 4, "CNI_CONTAINERID is '../x': must contain letters"),
        ({}, {"cniVersion": "0.2.0"}, 1, "cniVersion is '0.2.0': must be one of 0.3.0"),
        ({}, {"prevResult": None}, 7, "prevResult is missing: meshwright-cni must be in a list after"),
        ({}, {"socket": None}, 7, "socket is None: must be the path"),
    ],
)
def test_invalid_input_is_refused_with_the_code_of_the_specification(
    tmp_path: Path, variables: dict[str, str], changes: dict[str, Any], code: int, words: str
) -> None:
    """A wrong variable or configuration is refused before the daemon is asked.

    The error has the code of the CNI specification and the field at fault.
    """
    with pytest.raises(CniRefusal) as refused:
        run(environment("ADD") | variables, config(tmp_path, **changes))
    assert (refused.value.code, refused.value.msg[: len(words)]) == (code, words)


def test_program_prints_only_json(tmp_path: Path) -> None:
    """Results and errors are JSON on standard output, and errors exit with status 1.

    The program runs with the bare interpreter (`-I -S`).
    """
    for given, status in ((config(tmp_path, cniVersion="0.3.1"), 0), (b"\xff", 1)):
        done = subprocess.run(
            [sys.executable, "-I", "-S", relay.__file__],
            input=given,
            env=environment("ADD"),
            capture_output=True,
            timeout=HANG_SECONDS,
            check=False,
        )
        result = json.loads(done.stdout)
        assert (done.returncode, done.stderr) == (status, b"")
        if status:
            assert (result["code"], result["cniVersion"], sorted(result)) == (
                *(6, "1.1.0"),
                ["cniVersion", "code", "details", "msg"],
            )
        else:
            assert result == {**RESULT, "cniVersion": "0.3.1"}
