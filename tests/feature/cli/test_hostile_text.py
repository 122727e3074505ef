"""Tests that foreign text in the output of commands neither controls the terminal nor forges a line."""

import os
import pty
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.feature.cli import hostile
from tests.feature.cli.hostile import FORGED, MESH, POD, TEXT
from tests.feature.cli.test_program import COMMANDS
from tests.tools.deadline import HANG_SECONDS
from tests.tools.forked_cli import Command, Done, Typed

FILE = f"{TEXT}.yaml"
AT = "AT"
"""Where an agent and an Envoy answer, in a command line."""

ASK = ("--from", "a/b", "--to", "c/d:80")
NAME = ("--service", "a", "--namespace", "b")
STATE = ("--state", "s")

TYPED = [
    ("agent", "--ads", TEXT, "--credentials", FILE, "--run", "run"),
    ("agent", "check", "--credentials", FILE, "--run", FILE, "--status", AT, "--admin", AT),
    ("agent", "drain", "--status", AT),
    ("agent", "drain", "--status", TEXT),
    ("agent", "request", "GET", "/none", "--admin", AT),
    ("agent", "request", "GET", TEXT, "--admin", AT),
    ("agent", "status", "--status", AT),
    ("agent", "wait", "--status", AT, "--seconds", "0"),
    ("apply", "-f", FILE, "--mesh", "mesh"),
    ("bootstrap", "--credentials", FILE, "--ads", "127.0.0.1:1"),
    ("bug-report", *STATE, "--out", f"{TEXT}.tar.gz", "--log", FILE, "--log", "none" + TEXT),
    ("certs", "issue-proxy", *STATE, "--uuid", "u", *NAME, "--out", f"out{TEXT}"),
    ("certs", "list", *STATE),
    ("certs", "rebuild-ledger", *STATE),
    ("certs", "revoke", *STATE, TEXT),
    ("certs", "rotate-root", *STATE, "--status"),
    ("certs", "rotate-root", *STATE),
    ("certs", "seal", *STATE, "--key-passphrase-file", FILE),
    ("certs", "show", *STATE, TEXT),
    ("certs", "token", "create", *STATE, *NAME),
    ("certs", "token", "list", *STATE),
    ("certs", "token", "revoke", *STATE, TEXT),
    ("certs", "unseal", *STATE, "--key-passphrase-file", FILE),
    ("check", *STATE),
    ("check", "--state", TEXT, "--mesh", "mesh"),
    ("cni", "install", "--daemon-set", TEXT),
    ("cni", "uninstall", "--networks", "mesh", "--programs", TEXT),
    ("connectivity", *STATE, *ASK),
    ("connectivity", "--facts", FILE),
    ("crds", "--kind", TEXT),
    ("delete", TEXT, TEXT),
    ("diff", "mesh", *STATE),
    ("explain", *STATE, *ASK),
    ("explain", "--mesh", "mesh", "--from", TEXT, "--to", TEXT),
    ("explain-injection", "-f", FILE),
    ("explain-injection", "-f", "pods.yaml", "--config", FILE),
    ("get", TEXT, TEXT),
    ("hosts", *STATE, "--namespace", TEXT),
    ("inject", "-f", "pods.yaml"),
    ("inject", "-f", FILE),
    ("inject", "-f", "pods.yaml", "--config", "config.yaml"),
    ("install", "--print", "--values", FILE),
    ("install", "--print", "--set", f"{TEXT}={TEXT}"),
    ("intercept", "--include-inbound-ports", TEXT),
    ("lint", "mesh"),
    ("lint", "mesh", "--json"),
    ("lint", FILE),
    ("lint", f"none{TEXT}"),
    ("log-level", *STATE),
    ("log-level", "--agent", AT),
    ("migrate", "osm", "-f", "mesh"),
    ("migrate", "osm", "-f", "pods.yaml", "--out", f"moved{TEXT}"),
    ("migrate", "smi", "-f", "mesh"),
    ("migrate", "smi", "-f", "mesh", "--out", f"routes{TEXT}"),
    ("proxies", *STATE),
    ("proxies", *STATE, "--json"),
    ("proxy", "retry", *STATE, "u"),
    ("proxy", "show", *STATE, "u"),
    ("proxy", "show", *STATE, TEXT),
    ("replicas", *STATE),
    ("schema", TEXT),
    ("serve", "--mesh", "mesh", *STATE, "--config", FILE),
    ("serve", "--mesh", TEXT, "--state", "new"),
    ("sources", *STATE),
    *(("stat", of, *STATE) for of in ("services", "proxies", "edges", "routes", "backends")),
    ("stat", "--window", TEXT, *STATE),
    ("state", "export", f"none{TEXT}/file", *STATE, "--passphrase-file", FILE),
    ("state", "import", FILE, *STATE, "--passphrase-file", FILE),
    ("state", "move", *STATE, "--config", FILE),
    ("tap", "shop/cart", *STATE),
    ("top", *STATE),
    ("uninject", "-f", "pods.yaml"),
    ("unit", "serve", "--program", TEXT),
    ("version", TEXT),
    ("webhook", "--at", TEXT, "--ca", FILE),
    ("webhook", "--at", "a/b", "--ca", FILE),
    (TEXT,),
    ("lint", f"--{TEXT}"),
    ("stat", TEXT, *STATE),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with hostile files."""
    path = tmp_path_factory.mktemp("h")
    for item in ("mesh", "s"):
        (path / item).mkdir(mode=0o700)
    (path / "mesh" / FILE).write_text(MESH)
    (path / "mesh" / f"b{FILE}").write_text(f"{{{TEXT}")
    (path / "mesh" / f"c{FILE}").symlink_to("../secret")
    (path / FILE).write_text(f"{TEXT}: [")
    (path / "pods.yaml").write_text(POD)
    (path / "config.yaml").write_text(f"policy: {hostile.MANIFEST}\n{hostile.MANIFEST}: 1\n")
    return path


@pytest.fixture(scope="module")
def at(folder: Path) -> Iterator[str]:
    """Serve hostile answers to every command, and return the address for an agent and an Envoy."""
    with hostile.answering(folder / "s") as result:
        yield result


@pytest.fixture
def run(typed: Typed, folder: Path, at: str) -> Callable[..., Done]:
    """A function that runs commands among the hostile files and servers."""

    def typed_there(*arguments: str, **environment: str) -> Done:
        messages = tuple(at if argument == AT else argument for argument in arguments)
        return typed.run(
            Command(folder, messages, {"TMPDIR": str(folder), **environment}), timeout=HANG_SECONDS
        )

    return typed_there


def faults(done: Done) -> set[str]:
    """Return unprintable characters and forged lines in the output."""
    lines = f"{done.stdout}\n{done.stderr}".split("\n")
    return {
        *(item for line in lines for item in line if not item.isprintable()),
        *(line for line in lines if line.removeprefix("│ ").startswith(FORGED)),
    }


@pytest.mark.parametrize(
    "arguments", TYPED, ids=lambda item: " ".join(item)[:24].encode("unicode_escape").decode()
)
def test_hostile_text_neither_controls_the_terminal_nor_forges_lines(
    run: Callable[..., Done], arguments: tuple[str, ...]
) -> None:
    """Text of files, file names, servers, agents, Envoys and arguments is escaped in the output."""
    done = run(*arguments)
    assert faults(done) == set(), done
    assert done.stdout or done.stderr


def test_hostile_text_is_tested_with_every_command() -> None:
    """Every command is in the list above, so that a new command must be added."""
    known = {name for name in COMMANDS for words in TYPED if " ".join(words).startswith(name)}
    assert known == set(COMMANDS)


def test_hostile_text_is_printed_as_escapes(run: Callable[..., Done]) -> None:
    """The escapes show the reader the exact text."""
    shown = run("hosts", *STATE, "--namespace", "a").stdout
    one = rf"abc\x1b[2J\x1b]0;b\x07\x9b31m\u202ec\u2028\x7f\x08\x0d{FORGED}\x0a{FORGED}\x09d"
    assert shown == f"{one} {one}\n"


def test_output_for_programs_is_not_escaped(run: Callable[..., Done], folder: Path) -> None:
    """Output that no terminal reads is passed on as it is: an unchanged manifest, an answer of Envoy."""
    text = '{"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "\x9b\u202e\x7f"}}\n'
    (folder / "same.json").write_text(text)
    assert run("inject", "-f", "same.json").stdout == text
    shutil.copy(folder / "same.json", folder / "copy.json")
    assert run("agent", "request", "GET", "/raw", "--admin", AT).stdout == TEXT.replace("\r", "\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ("proxies", *STATE),
        ("inject", "-f", "same.json"),
        ("agent", "request", "GET", "/raw", "--admin", AT),
        ("lint", FILE, "--typo"),
        ("lint", "mesh"),
        ("tap", "a/b", *STATE),
        ("lint", "--help"),
    ],
    ids=" ".join,
)
def test_output_on_a_terminal_has_colours_but_no_foreign_escapes(
    typed: Typed, folder: Path, at: str, arguments: tuple[str, ...]
) -> None:
    """The only escape sequences on a terminal are the command's own colours."""
    (folder / "same.json").write_text('{"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "\x9b"}}\n')
    messages = tuple(at if argument == AT else argument for argument in arguments)
    shown = _on_a_terminal(typed, Command(folder, messages, {"TERM": "xterm", "COLUMNS": "200"}))
    plain = re.sub(r"\x1b\[(?:0|[1-9][0-9;]{0,5})m", "", shown).replace("\r\n", "\n")
    assert {item for item in plain if not item.isprintable()} <= {"\n"}
    if "request" not in arguments:  # the text has several lines
        assert faults(Done(0, plain, "")) == set()
    if "--help" in arguments or "--typo" in arguments:
        assert plain != shown.replace("\r\n", "\n")


def _on_a_terminal(typed: Typed, command: Command) -> str:
    """Return the output of a command on a terminal."""
    leader, follower = pty.openpty()
    with os.fdopen(follower, "w") as terminal:
        running = typed.start(command, terminal, terminal)
    shown = b""
    while True:
        try:
            read = os.read(leader, 65536)
        except OSError:  # the last process has closed the terminal
            break
        shown += read
        if not read:
            break
    running.wait(60)
    os.close(leader)
    return shown.decode()
