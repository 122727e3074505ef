"""The plug-in as a container runtime runs it, by the CNI specification: what it prints, and its errors."""

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

RESULT = {"cniVersion": "1.0.0", "interfaces": [{"name": "eth0"}], "ips": [], "big": 2**60}
POD = "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=store-0;K8S_POD_UID=u-1"


def environment(command: str, **changes: str) -> dict[str, str]:
    """Return what a runtime sets."""
    known = {"CNI_CONTAINERID": "c0", "CNI_NETNS": "/run/netns/n", "CNI_IFNAME": "eth0", "CNI_ARGS": POD}
    return {"CNI_COMMAND": command, "CNI_PATH": "/opt/cni/bin", **known, **changes}


def config(folder: Path, **changes: Any) -> bytes:
    """Return what a runtime writes to standard input."""
    known = {"cniVersion": "1.0.0", "name": "net", "type": "meshwright-cni", "prevResult": RESULT}
    return json.dumps({**known, "socket": f"{folder}/cni.sock", **changes}).encode()


@contextmanager
def answering(folder: Path, answer: bytes) -> Iterator[list[Any]]:
    """Answer one request, as a daemon may; yield what was asked."""
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


def test_add_gives_on_what_was_before_when_the_daemon_has_answered(tmp_path: Path) -> None:
    """It is told who the pod is, and where its network."""
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


def test_a_refusal_is_the_runtimes_to_hear(tmp_path: Path) -> None:
    """With its code and words."""
    with (
        answering(tmp_path, b'{"code": 11, "msg": "no", "details": "why"}'),
        pytest.raises(CniRefusal) as refused,
    ):
        run(environment("ADD"), config(tmp_path))
    assert (refused.value.code, refused.value.msg, refused.value.details) == (11, "no", "why")


@pytest.mark.parametrize("answer", [b"", b'{"code": 1', b"[]"])
def test_a_daemon_that_dies_in_between_has_not_answered(tmp_path: Path, answer: bytes) -> None:
    """The pod is let through, and noted."""
    with answering(tmp_path, answer):
        assert json.loads(run(environment("ADD"), config(tmp_path))) == RESULT
    (note,) = (tmp_path / relay.NOTES).iterdir()
    assert note.name == "c0.json"


def test_without_a_daemon_pods_are_noted_until_they_end(tmp_path: Path) -> None:
    """Whoever they are; asked twice it is one note. What is no pod is none of ours."""
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


def test_where_no_note_can_be_left_no_pod_is_let_through(tmp_path: Path) -> None:
    """It would never have its rules; STATUS says so before."""
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
def test_what_ends_never_fails(given: bytes) -> None:
    """DEL and GC, whatever they are given, and VERSION."""
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
def test_what_is_wrong_is_said_with_the_specifications_code(
    tmp_path: Path, variables: dict[str, str], changes: dict[str, Any], code: int, words: str
) -> None:
    """Before anybody is asked."""
    with pytest.raises(CniRefusal) as refused:
        run(environment("ADD") | variables, config(tmp_path, **changes))
    assert (refused.value.code, refused.value.msg[: len(words)]) == (code, words)


def test_as_a_program_it_prints_json_alone(tmp_path: Path) -> None:
    """Errors too, at standard output, with a status that is not 0; by the interpreter alone."""
    for given, status in ((config(tmp_path, cniVersion="0.3.1"), 0), (b"\xff", 1)):
        done = subprocess.run(
            [sys.executable, "-I", "-S", relay.__file__],
            input=given,
            env=environment("ADD"),
            capture_output=True,
            timeout=60,
            check=False,
        )
        found = json.loads(done.stdout)
        assert (done.returncode, done.stderr) == (status, b"")
        if status:
            assert (found["code"], found["cniVersion"], sorted(found)) == (
                *(6, "1.1.0"),
                ["cniVersion", "code", "details", "msg"],
            )
        else:
            assert found == {**RESULT, "cniVersion": "0.3.1"}
