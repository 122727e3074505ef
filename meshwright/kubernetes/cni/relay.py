"""The CNI plug-in for container runtimes (specification 1.1.0), which passes requests to the daemon.

The relay and an interpreter are copied to the host. The relay therefore imports only modules of the standard
library that the interpreter has from the start. The relay follows the plug-ins for the network itself, and
returns their result (`prevResult`).

Without an answer from the daemon, the relay writes a note with the request and lets the Pod start. Later the
daemon sets the rules; the Pod's first container waits for them. Pods outside the mesh start without delay.
DEL and GC do not undo anything, because the rules end with the Pod's network.
"""

import json
import os
import re
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

VERSIONS: Final = ("0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0")
"""Versions of the specification with lists of plug-ins."""
SOCKET: Final = "socket"
"""Field of our list entry with the path of the daemon's socket."""
NOTES: Final = "missed"
"""Folder, next to the socket, with the notes of unanswered requests."""

INCOMPATIBLE, ENVIRONMENT, INPUT_OUTPUT, UNDECODABLE, INVALID, AGAIN, UNAVAILABLE = 1, 4, 5, 6, 7, 11, 50
"""Error codes of the specification."""

_SECONDS: Final = 45.0
"""Seconds to wait for an answer.

The daemon asks the API server, and may wait until another program releases the lock of the rules.
"""
_NAME: Final = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.\-]*")
_NEEDED: Final = ("CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME")
_POD: Final = {"namespace": "K8S_POD_NAMESPACE", "name": "K8S_POD_NAME", "uid": "K8S_POD_UID"}


class CniRefusal(Exception):
    """A failed CNI request: an error code of the CNI specification, a sentence, and details."""

    def __init__(self, code: int, msg: str, details: str = "") -> None:
        super().__init__(msg)
        self.code, self.msg, self.details = code, msg, details


def run(environment: Mapping[str, str], stdin: bytes) -> str:
    """Carry out a CNI request of the runtime; return the text for standard output. Raises CniRefusal."""
    command = environment.get("CNI_COMMAND", "")
    match command:
        case "VERSION":
            return json.dumps({"cniVersion": _answer_version(stdin), "supportedVersions": list(VERSIONS)})
        case "DEL":
            with suppress(CniRefusal, OSError):  # DEL must succeed, as the specification demands
                _note(_config(stdin), _container(environment)).unlink()
            return ""
        case "GC":
            return ""
        case "STATUS":
            _require_notes(_config(stdin))
            return ""
        case "ADD" | "CHECK":
            config = _config(stdin)
            result = config.get("prevResult")
            if not isinstance(result, dict):
                raise CniRefusal(
                    INVALID, "prevResult is missing: meshwright-cni must be in a list after another plug-in"
                )
            _carry_out(command, config, environment)
            return json.dumps({**result, "cniVersion": config["cniVersion"]}) if command == "ADD" else ""
        case _:
            known = "ADD, CHECK, DEL, GC, STATUS or VERSION"
            raise CniRefusal(ENVIRONMENT, f"CNI_COMMAND is {command!r}: must be {known}")


def _carry_out(command: str, config: Mapping[str, Any], environment: Mapping[str, str]) -> None:
    if missing := [name for name in _NEEDED if not environment.get(name)]:
        raise CniRefusal(ENVIRONMENT, f"{', '.join(missing)} must be set for {command}")
    pairs = (item.partition("=") for item in environment.get("CNI_ARGS", "").split(";"))
    words = {name: value for name, _, value in pairs}
    pod = {name: words.get(variable, "") for name, variable in _POD.items()}
    if not (pod["namespace"] and pod["name"]):
        return  # not a Pod of Kubernetes
    container = _container(environment)
    asked = {"command": command, "container": container, "netns": environment["CNI_NETNS"], **pod}
    answer = _ask_daemon(str(config[SOCKET]), asked)
    # The daemon may be restarting. A note lets the pod start, and the daemon sets the rules when it returns.
    if answer is None and command == "ADD":
        _leave(_note(config, container), asked)
    elif answer is None:
        raise CniRefusal(
            AGAIN,
            f"the daemon of meshwright-cni does not answer at {config[SOCKET]}: check that its "
            "Pod on this node is ready",
        )
    elif answer.get("code"):
        raise CniRefusal(int(answer["code"]), str(answer.get("msg", "")), str(answer.get("details", "")))


def _ask_daemon(path: str, request: Mapping[str, str]) -> dict[str, Any] | None:
    """Send a request to the daemon's socket; return the answer, or None if missing or incomplete."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as made:
            made.settimeout(_SECONDS)
            made.connect(path)
            made.sendall(json.dumps(request).encode())
            made.shutdown(socket.SHUT_WR)
            answer = json.loads(b"".join(iter(lambda: made.recv(65536), b"")))
    except (OSError, ValueError):
        return None
    return answer if isinstance(answer, dict) else None


def _leave(note: Path, request: Mapping[str, str]) -> None:
    """Write a note of the request for a later daemon, completely or not at all. Raises CniRefusal."""
    new = note.with_suffix(".new")
    try:
        note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new.unlink(missing_ok=True)  # remains of a plug-in that was killed
        with new.open("x") as file:  # "x" follows no link and empties no file
            file.write(json.dumps(request))
        new.replace(note)
    except OSError as error:
        words = f"the daemon of meshwright-cni does not answer, and {note} cannot be written"
        raise CniRefusal(AGAIN, words, str(error)) from error


def _require_notes(config: Mapping[str, Any]) -> None:
    """Raise CniRefusal if an ADD without a running daemon could not write a note."""
    folder = _note(config, "").parent
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise OSError("the folder is not writable")
    except OSError as error:
        words = f"notes for the daemon of meshwright-cni cannot be written to {folder}"
        raise CniRefusal(UNAVAILABLE, words, str(error)) from error


def _note(config: Mapping[str, Any], container: str) -> Path:
    return Path(str(config[SOCKET])).parent / NOTES / f"{container}.json"


def _container(environment: Mapping[str, str]) -> str:
    result = environment.get("CNI_CONTAINERID", "")
    if _NAME.fullmatch(result) is None:
        raise CniRefusal(
            ENVIRONMENT,
            f"CNI_CONTAINERID is {result!r}: must contain letters and digits, and ._- only between them",
        )
    return result


def _config(config: bytes) -> dict[str, Any]:
    try:
        result = json.loads(config)
    except (ValueError, RecursionError) as error:
        raise CniRefusal(UNDECODABLE, "the standard input must be JSON", str(error)) from error
    if not isinstance(result, dict):
        raise CniRefusal(UNDECODABLE, "the standard input must be a JSON object")
    if result.get("cniVersion") not in VERSIONS:
        words = f"cniVersion is {result.get('cniVersion')!r}: must be one of {', '.join(VERSIONS)}"
        raise CniRefusal(INCOMPATIBLE, words)
    if not str(result.get(SOCKET) or "").startswith("/"):
        raise CniRefusal(
            INVALID, f"{SOCKET} is {result.get(SOCKET)!r}: must be the path of the daemon's socket"
        )
    return result


def _answer_version(config: bytes) -> str:
    """Return the CNI version of the answer: the caller's version if supported, otherwise the newest."""
    with suppress(ValueError, AttributeError, RecursionError):
        answer = json.loads(config).get("cniVersion")
        if answer in VERSIONS:
            return str(answer)
    return VERSIONS[-1]


def main() -> int:
    """Carry out the request in the environment and standard input; return the exit status."""
    given = sys.stdin.buffer.read()
    try:
        sys.stdout.write(run(os.environ, given))
    except CniRefusal as error:
        document = {"code": error.code, "msg": error.msg, "details": error.details}
        sys.stdout.write(json.dumps({"cniVersion": _answer_version(given), **document}))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
