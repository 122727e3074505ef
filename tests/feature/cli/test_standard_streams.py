"""Tests of standard streams that are closed, full, in another encoding, or without a reader.

Each command is its own process, because these conditions occur below Python's own streams.
"""

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.tools import libyaml
from tests.tools.deadline import HANG_SECONDS
from tests.tools.forked_cli import ROOT, Done

VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"] + "\n"
CLOSED = "it is closed, or not open for"
FULL = "meshwright: standard output cannot be written: No space left on device\n"
NO_OUTPUT = f"meshwright: standard output cannot be written: {CLOSED} writing\n"
NO_INPUT = f"meshwright: standard input cannot be read: {CLOSED} reading\n"
SERVICE_ACCOUNT = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: store, namespace: shop}\n"
HOST_NETWORK = (
    "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"
    "spec: {hostNetwork: true, containers: [{name: a, image: b}]}\n"
)
NOT_INSTALLED = (
    "meshwright: this command only prints manifests: to install, run "
    "`meshwright install --print | kubectl apply -f -`\n"
)


def shell(
    line: str, folder: Path, given: bytes | None = None, variables: Mapping[str, str] | None = None
) -> tuple[int, bytes, str]:
    """Run a shell line in which `meshwright` is the program."""
    program = f'meshwright() {{ "{sys.executable}" -m meshwright "$@"; }}\n'
    done = subprocess.run(
        ["sh", "-c", program + line],
        input=given,
        capture_output=True,
        cwd=folder,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **(variables or {})},
        check=False,
        timeout=HANG_SECONDS,
    )
    return done.returncode, done.stdout, done.stderr.decode()


@pytest.mark.parametrize(
    ("line", "done"),
    [
        ("meshwright version > /dev/full", Done(2, "", FULL)),
        ("meshwright version >&-", Done(2, "", NO_OUTPUT)),
        ("meshwright lint --codes > /dev/full", Done(2, "", FULL)),
        ("meshwright lint --codes --json >&-", Done(2, "", NO_OUTPUT)),
        ("PYTHONUNBUFFERED=1 meshwright crds > /dev/full", Done(2, "", FULL)),
        ("meshwright --help > /dev/full", Done(2, "", FULL)),
        ("meshwright version 2> /dev/full", Done(0, VERSION, "")),
        ("meshwright version 2>&-", Done(0, VERSION, "")),
        ("meshwright install 2> /dev/full", Done(2, "", "")),
        ("meshwright install 2>&-", Done(2, "", "")),
        ("meshwright install <&- >&-", Done(2, "", NOT_INSTALLED)),
        ("meshwright inject -f pod.yaml 2> /dev/full", Done(2, HOST_NETWORK, "")),
        ("meshwright inject -f pod.yaml 2>&-", Done(0, HOST_NETWORK, "")),
        ("meshwright serve --mesh none 2>&-", Done(2, "", "")),
    ],
)
def test_unwritable_output_ends_with_a_message_and_a_status(tmp_path: Path, line: str, done: Done) -> None:
    """Lost output is never status 0.

    A user who closes standard error wants no messages, so that alone is no failure.
    """
    (tmp_path / "pod.yaml").write_text(HOST_NETWORK)
    status, printed, text = shell(line, tmp_path)
    assert Done(status, printed.decode(), text) == done


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            "bug-report --state none --out new",
            "cannot write new: File too large; give another name with --out",
        ),
        ("schema --directory new", "cannot write the schemas: [Errno 27] File too large"),
        ("migrate osm -f a.yaml --out new", "--out is 'new': File too large"),
        ("certs token create --state new --service a --namespace b", "new/.ca.new/ca.key cannot be written"),
    ],
)
def test_file_that_cannot_be_written_is_reported(tmp_path: Path, arguments: str, said: str) -> None:
    """A file size limit of 0 simulates a full disk. The message is one line, and no file stays."""
    (tmp_path / "a.yaml").write_text(SERVICE_ACCOUNT)
    status, printed, words = shell(f"ulimit -f 0; meshwright {arguments}", tmp_path)
    assert (status, printed, words.count("\n")) == (2, b"", 1)
    assert words.startswith(f"meshwright: {said}")
    assert not (tmp_path / "new").is_file()


@pytest.mark.parametrize("arguments", [("version",), ("lint", "--codes")])
def test_output_to_a_closed_pipe_ends_like_sigpipe(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """The status is 141, as after SIGPIPE, without a message."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "meshwright", *arguments],
        stdout=writing,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize(
    "arguments",
    [
        "lint -",
        "explain - --mesh .",
        "inject -f -",
        "uninject -f -",
        "explain-injection -f -",
        "connectivity --facts -",
    ],
)
def test_closed_standard_input_is_reported(tmp_path: Path, arguments: str) -> None:
    """Each command that reads standard input reports that it is closed."""
    assert shell(f"meshwright {arguments} <&-", tmp_path) == (2, b"", NO_INPUT)


@pytest.mark.parametrize("arguments", ["explain - --mesh .", "connectivity --facts -", "inject -f -"])
def test_standard_input_that_is_not_utf_8_is_reported(tmp_path: Path, arguments: str) -> None:
    """The message names the first invalid byte and the remedy."""
    text = "meshwright: standard input is not UTF-8 (byte 1): convert it to UTF-8\n"
    assert shell(f"meshwright {arguments}", tmp_path, b"a\xff") == (2, b"", text)


BARE = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
ENCODINGS = [BARE, {"PYTHONIOENCODING": "ascii"}, {"PYTHONIOENCODING": "latin-1"}]
WRONG = "apiVersion: v1\nkind: Service\nmetadata: {name: šč, namespace: shop}\n"


@pytest.mark.parametrize("variables", ENCODINGS)
def test_characters_that_the_encoding_lacks_are_printed_as_escapes(
    tmp_path: Path, variables: Mapping[str, str]
) -> None:
    """People get escapes in such a terminal. Programs get JSON with the same value."""
    (tmp_path / "a.yaml").write_text(WRONG, "utf-8")
    status, printed, text = shell("meshwright lint a.yaml", tmp_path, variables=variables)
    assert (status, text) == (1, "")
    rule = "must be a Kubernetes name: at most 253 characters a-z, 0-9, hyphens and dots"
    assert printed.decode("ascii") == (
        f'error: MW1006 a.yaml:1 (document 1): document: metadata.name is "\\u0161\\u010d": {rule}\n1 error\n'
    )
    status, printed, text = shell("meshwright lint a.yaml --json", tmp_path, variables=variables)
    assert (status, text, json.loads(printed)[0]["value"]) == (1, "", '"šč"')


@pytest.mark.parametrize("variables", ENCODINGS)
def test_manifests_and_units_are_printed_in_utf_8(tmp_path: Path, variables: Mapping[str, str]) -> None:
    """YAML and unit files are UTF-8 in every locale, because programs read them."""
    (tmp_path / "values.yaml").write_text("image: {repository: reg.example/š}\n", "utf-8")
    install = "meshwright install --print -f values.yaml"
    status, printed, text = shell(install, tmp_path, variables=variables)
    assert (status, text) == (0, "")
    images = [
        container["image"]
        for item in libyaml.load_all(printed.decode("utf-8"))
        if "template" in item.get("spec", {})
        for container in item["spec"]["template"]["spec"]["containers"]
    ]
    assert images == [f"reg.example/š:{VERSION.strip()}"]
    unit = "meshwright unit agent --program /opt/m -- --ads a:1 --hosts-file /etc/š"
    status, printed, text = shell(unit, tmp_path, variables=variables)
    assert (status, text) == (0, "")
    # In an ASCII locale the path is bytes to Python, and is printed in quotes.
    assert "\nReadWritePaths=/etc/š\n" in printed.decode("utf-8").replace('"', "")


def test_log_line_is_read_as_utf_8(tmp_path: Path) -> None:
    """A log line is UTF-8, also if the terminal has another encoding."""
    (tmp_path / "a.yaml").write_text(SERVICE_ACCOUNT)
    line = {"start_time": "", "local_address": "10.0.0.1:8080", "caller": "é"}
    given = json.dumps(line, ensure_ascii=False).encode()
    text = "meshwright: caller is 'é': must be spiffe://<trust domain>/ns/<namespace>/sa/<service account>\n"
    assert shell("meshwright explain - --mesh .", tmp_path, given) == (2, b"", text)
    text = (
        "meshwright: caller is '\\xe9': must be spiffe://<trust domain>/ns/<namespace>/sa/<service account>\n"
    )
    assert shell("meshwright explain - --mesh .", tmp_path, given, BARE) == (2, b"", text)
