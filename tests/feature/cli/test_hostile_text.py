"""Commands print what others have written; none of it is a command to the terminal, or a line of its own."""

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
    ("diff", "mesh", *STATE),
    ("explain", *STATE, *ASK),
    ("explain", "--mesh", "mesh", "--from", TEXT, "--to", TEXT),
    ("explain-injection", "-f", FILE),
    ("explain-injection", "-f", "pods.yaml", "--config", FILE),
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
    ("proxies", *STATE),
    ("proxies", *STATE, "--json"),
    ("proxy", "retry", *STATE, "u"),
    ("proxy", "show", *STATE, "u"),
    ("proxy", "show", *STATE, TEXT),
    ("schema", TEXT),
    ("serve", "--mesh", "mesh", *STATE, "--config", FILE),
    ("serve", "--mesh", TEXT, "--state", "new"),
    ("sources", *STATE),
    *(("stat", of, *STATE) for of in ("services", "proxies", "edges", "routes", "backends")),
    ("stat", "--window", TEXT, *STATE),
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
    """Return a folder with hostile files."""
    found = tmp_path_factory.mktemp("h")
    for each in ("mesh", "s"):
        (found / each).mkdir(mode=0o700)
    (found / "mesh" / FILE).write_text(MESH)
    (found / "mesh" / f"b{FILE}").write_text(f"{{{TEXT}")
    (found / "mesh" / f"c{FILE}").symlink_to("../secret")
    (found / FILE).write_text(f"{TEXT}: [")
    (found / "pods.yaml").write_text(POD)
    (found / "config.yaml").write_text(f"policy: {hostile.MANIFEST}\n{hostile.MANIFEST}: 1\n")
    return found


@pytest.fixture(scope="module")
def at(folder: Path) -> Iterator[str]:
    """Answer to every command, and return where an agent and an Envoy do."""
    with hostile.answering(folder / "s") as found:
        yield found


@pytest.fixture
def run(typed: Typed, folder: Path, at: str) -> Callable[..., Done]:
    """Return a runner of commands among all that."""

    def typed_there(*arguments: str, **environment: str) -> Done:
        told = tuple(at if each == AT else each for each in arguments)
        return typed.run(Command(folder, told, {"TMPDIR": str(folder), **environment}), timeout=60)

    return typed_there


def faults(done: Done) -> set[str]:
    """Return the characters that a terminal would not show, and lines that others have made."""
    lines = f"{done.stdout}\n{done.stderr}".split("\n")
    return {
        *(each for line in lines for each in line if not each.isprintable()),
        *(line for line in lines if line.removeprefix("│ ").startswith(FORGED)),
    }


@pytest.mark.parametrize(
    "arguments", TYPED, ids=lambda each: " ".join(each)[:24].encode("unicode_escape").decode()
)
def test_nothing_foreign_is_a_command_of_the_terminal(
    run: Callable[..., Done], arguments: tuple[str, ...]
) -> None:
    """Of files, their names and content, of servers, agents, Envoys and of what was typed."""
    done = run(*arguments)
    assert faults(done) == set(), done
    assert done.stdout or done.stderr


def test_every_command_is_among_them() -> None:
    """One that is new has to be added."""
    known = {name for name in COMMANDS for words in TYPED if " ".join(words).startswith(name)}
    assert known == set(COMMANDS)


def test_what_is_hostile_is_shown_as_escapes(run: Callable[..., Done]) -> None:
    """Whoever looks at it sees what was written."""
    shown = run("hosts", *STATE, "--namespace", "a").stdout
    one = rf"abc\x1b[2J\x1b]0;b\x07\x9b31m\u202ec\u2028\x7f\x08\x0d{FORGED}\x0a{FORGED}\x09d"
    assert shown == f"{one} {one}\n"


def test_what_programs_read_is_byte_for_byte(run: Callable[..., Done], folder: Path) -> None:
    """A manifest that is not changed, and an answer of Envoy, go on as they are where no terminal is."""
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
def test_on_a_terminal_there_are_colours_and_nothing_else(
    typed: Typed, folder: Path, at: str, arguments: tuple[str, ...]
) -> None:
    """Colours are ours; what others have written has none."""
    (folder / "same.json").write_text('{"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "\x9b"}}\n')
    told = tuple(at if each == AT else each for each in arguments)
    shown = _on_a_terminal(typed, Command(folder, told, {"TERM": "xterm", "COLUMNS": "200"}))
    plain = re.sub(r"\x1b\[(?:0|[1-9][0-9;]{0,5})m", "", shown).replace("\r\n", "\n")
    assert {each for each in plain if not each.isprintable()} <= {"\n"}
    if "request" not in arguments:  # a text of several lines
        assert faults(Done(0, plain, "")) == set()
    if "--help" in arguments or "--typo" in arguments:
        assert plain != shown.replace("\r\n", "\n")


def _on_a_terminal(typed: Typed, command: Command) -> str:
    """Return what a command shows on a terminal."""
    leader, follower = pty.openpty()
    with os.fdopen(follower, "w") as terminal:
        running = typed.start(command, terminal, terminal)
    shown = b""
    while True:
        try:
            read = os.read(leader, 65536)
        except OSError:  # nobody has the terminal open any more
            break
        shown += read
        if not read:
            break
    running.wait(60)
    os.close(leader)
    return shown.decode()
