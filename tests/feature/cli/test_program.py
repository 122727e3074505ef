"""Tests of the behaviour that all commands share: statuses, and output that programs can read."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from meshwright.cli import main
from meshwright.cli.errors import CommandFailed, Status
from meshwright.enrolment.tokens import read_token
from tests.tools.forked_cli import ROOT, Done

Run = Callable[..., Done]
GOOD = """
apiVersion: v1
kind: ServiceAccount
metadata: {name: store, namespace: shop}
"""
BAD = "kind: ["
WORKLOAD = """
apiVersion: meshwright.dev/v1alpha1
kind: Workload
metadata: {name: store-1, namespace: shop}
spec: {address: 10.0.0.1, uuid: u1, service: store, serviceAccount: store}
"""
PODS = "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: b}]}}"
NOBODY = ("--state", "none")
NAME = ("--service", "store", "--namespace", "shop", "--out", "out")
SERVICE = ("--service", "store", "--namespace", "shop")
ASK = ("--from", "a/b", "--to", "c/d:80")
PORT = "127.0.0.1:1"
ETCD = (
    *("--set", "store=etcd", "--set", f"etcd_endpoints=http://{PORT}"),
    *("--set", "key_passphrase_file=good.yaml"),
)

NO_AND_UNKNOWN = [
    (("apply", "-f", "good.yaml"), 2),
    (("delete", "Service", "web"), 2),
    (("get", "all"), 2),
    (("agent",), 2),
    (("agent", "check", "--credentials", "none", "--run", "none", "--status", PORT, "--admin", PORT), 1),
    (("agent", "check", "--ads", "here"), 2),
    (("agent", "drain", "--status", PORT), 2),
    (("agent", "request", "GET", "/", "--admin", PORT), 2),
    (("agent", "status", "--status", PORT), 2),
    (("agent", "wait", "--seconds", "0", "--status", PORT), 1),
    (("agent", "wait", "--status", "here"), 2),
    (("bootstrap", "--credentials", "none", "--ads", PORT), 2),
    (("bug-report", *NOBODY, "--out", "good.yaml"), 2),
    (("certs", "issue-proxy", "--state", "s", "--mesh", "mesh", "--uuid", "u2", *NAME), 1),
    (("certs", "issue-proxy", "--state", "mesh", "--uuid", "u1", *NAME), 2),
    (("certs", "list", *NOBODY), 2),
    (("certs", "rebuild-ledger", *NOBODY), 2),
    (("certs", "seal", *NOBODY), 2),
    (("certs", "seal", *NOBODY, "--key-passphrase-file", "none"), 2),
    (("certs", "unseal", "--state", "s", "--key-passphrase-file", "none"), 2),
    (("certs", "revoke", *NOBODY, "ab"), 2),
    (("certs", "rotate-root", *NOBODY, "--status"), 2),
    (("certs", "rotate-root", *NOBODY, "--status", "--abort"), 2),
    (("certs", "rotate-root", *NOBODY, "--give-up-older-than", "long"), 2),
    (("certs", "show", *NOBODY, "ab"), 2),
    (("certs", "token", "create", "--state", "s", "--mesh", "mesh", "--uuid", "u2", *SERVICE), 1),
    (("certs", "token", "create", "--state", "mesh", *SERVICE), 2),
    (("certs", "token", "create", "--state", "s", *SERVICE, "--valid-for", "soon"), 2),
    (("certs", "token", "list", *NOBODY), 2),
    (("certs", "token", "revoke", *NOBODY, "ab"), 2),
    (("check", "--state", "none"), 1),
    (("check", "--state", "none", "--http-address", "here"), 2),
    (("check",), 2),
    (("cni", "install", "--daemon-set", "mine"), 2),
    (("cni", "uninstall", "--networks", "none"), 2),
    (("connectivity", *NOBODY, *ASK), 2),
    (("connectivity", *ASK), 2),
    (("connectivity", "--facts", "bad.yaml"), 2),
    (("diff", "mesh", *NOBODY), 2),
    (("explain", "--mesh", "mesh", *ASK), 1),
    (("explain", "--mesh", "none", *ASK), 2),
    (("explain-injection", "-f", "pods.yaml"), 1),
    (("explain-injection", "-f", "none"), 2),
    (("explain-injection", "one", "-f", "pods.yaml"), 2),
    (("hosts", *NOBODY, "--namespace", "n"), 2),
    (("inject", "-f", "pods.yaml"), 1),
    (("inject", "-f", "none"), 2),
    (("inject", "-f", "good.yaml", "--config", "pods.yaml"), 2),
    (("install",), 2),
    (("install", "--print", "--set", "typo=1"), 2),
    (("install", "--print", "--values", "none"), 2),
    (("intercept", "--include-inbound-ports", "http"), 2),
    (("lint", "bad.yaml"), 1),
    (("lint", "none"), 2),
    (("log-level", *NOBODY), 2),
    (("migrate", "osm"), 2),
    (("migrate", "osm", "-f", "none"), 2),
    (("migrate", "osm", "-f", "bad.yaml"), 2),
    (("migrate", "smi"), 2),
    (("migrate", "smi", "-f", "none"), 2),
    (("log-level", "--agent", PORT), 2),
    (("proxies", *NOBODY), 2),
    (("proxy", "retry", *NOBODY, "u"), 2),
    (("proxy", "show", *NOBODY, "u"), 2),
    (("replicas", *NOBODY), 2),
    (("crds", "--kind", "Nothing"), 2),
    (("schema", "Workloat"), 2),
    (("webhook", "--at", "nowhere", "--ca", "s/ca/ca.pem"), 2),
    (("webhook", "--at", "a/b", "--ca", "s/ca/ca.key"), 2),
    (("serve", "--mesh", "none", "--state", "s"), 2),
    (("sources", *NOBODY), 2),
    (("stat", "edges", *NOBODY), 2),
    (("stat", "--window", "soon", *NOBODY), 2),
    (("state", "export", "f", *NOBODY), 2),
    (("state", "export", "f", *NOBODY, "--passphrase-file", "none"), 2),
    (("state", "export", "f"), 2),
    (("state", "import", "good.yaml", "--state", "s2"), 2),
    (("state", "import", "none", "--state", "s2"), 2),
    (("state", "move", *NOBODY), 2),
    (("tap", "shop/cart", *NOBODY), 2),
    (("tap", *NOBODY), 2),
    (("tap", "shop/cart", "--for", "soon", *NOBODY), 2),
    (("top", *NOBODY), 2),
    (("uninject", "-f", "none"), 2),
    (("no-such-command",), 2),
    (("lint", "--no-such-option"), 2),
]
YES = [
    ("bootstrap", "--credentials", "out", "--ads", PORT, "--output", "envoy.json"),
    ("bug-report", *NOBODY, "--out", "report.tar.gz"),
    ("certs", "list", "--state", "s"),
    ("certs", "show", "--state", "s", "u1"),
    ("certs", "token", "create", "--state", "s", *SERVICE),
    ("certs", "token", "list", "--state", "s"),
    ("cni", "uninstall", "--networks", "mesh", "--programs", "mesh"),
    ("crds", "--kind", "Workload"),
    ("inject", "-f", "good.yaml"),
    ("install", "--print"),
    ("intercept", "--dry-run"),
    ("lint", "good.yaml"),
    ("lint", "--codes"),
    ("migrate", "osm", "-f", "good.yaml"),
    ("migrate", "smi", "-f", "good.yaml"),
    ("schema", "Workload"),
    ("state", "move", *NOBODY, *ETCD),
    ("webhook", "--at", "mesh-system/meshwright", "--ca", "s/ca/ca.pem"),
    ("webhook", "--at", "a/b", "--ca", "s/ca/ca.pem", "--injection", "--revision", "canary"),
    ("uninject", "-f", "good.yaml"),
    ("unit", "serve", "--program", "/opt/meshwright/bin/meshwright"),
    ("version",),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with valid and invalid manifests."""
    (tmp_path / "mesh").mkdir()
    (tmp_path / "mesh" / "mesh.yaml").write_text(WORKLOAD)
    (tmp_path / "good.yaml").write_text(GOOD)
    (tmp_path / "bad.yaml").write_text(BAD)
    (tmp_path / "pods.yaml").write_text(PODS)
    return tmp_path


def _commands() -> Iterator[tuple[str, Any]]:
    """Yield every command that can be run, with its words."""

    def below(command: Any, words: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        group = getattr(command, "commands", None)
        if words and (group is None or command.invoke_without_command):
            yield " ".join(words), command
        for name, item in (group or {}).items():
            yield from below(item, (*words, name))

    return below(typer.main.get_command(main.app), ())


COMMANDS = dict(_commands())


@pytest.mark.parametrize(("arguments", "status"), NO_AND_UNKNOWN)
def test_command_exits_with_1_for_no_and_2_for_unknown(
    run: Run, folder: Path, arguments: tuple[str, ...], status: int
) -> None:
    """Each command has the expected status.

    With status 2 standard output is empty, because programs read it.
    """
    assert folder.is_dir()
    done = run(*arguments)
    assert done.returncode == status, done
    assert "Traceback" not in done.stderr
    if status == Status.UNKNOWN:
        assert done.stdout == ""


def test_successful_command_exits_with_0_and_prints_json(run: Run, folder: Path) -> None:
    """Each command here succeeds without a server and prints valid JSON."""
    assert run("certs", "issue-proxy", *("--state", "s", "--uuid", "u1"), *NAME, "--anyway").returncode == 0
    assert folder.is_dir()
    for arguments in YES:
        done = run(*arguments, "--json")
        assert (done.returncode, done.stderr) == (0, ""), arguments
        json.loads(done.stdout)


def test_every_command_is_in_the_tables_of_statuses() -> None:
    """The tables above have every command, so that a new command must be added."""
    tried = {" ".join(arguments) for arguments, _ in NO_AND_UNKNOWN} | {" ".join(item) for item in YES}
    missing = {name for name in COMMANDS if not any(item.startswith(name) for item in tried)}
    assert missing == set()


def test_every_command_has_the_json_option() -> None:
    """The option has the same name everywhere."""
    without = [
        name
        for name, command in COMMANDS.items()
        if not any("--json" in param.opts for param in command.params)
    ]
    assert without == []


def test_cli_page_lists_every_command_in_both_tables() -> None:
    """Both tables of docs/debug/cli.md, of statuses and of output, list all commands in order."""
    rows = re.findall(r"^\| `([a-z -]+)` \|", (ROOT / "docs" / "debug" / "cli.md").read_text(), re.MULTILINE)
    assert rows == sorted(COMMANDS) * 2


def test_internal_error_exits_with_unknown_and_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An internal error is status 2, because status 1 means "no", and the traceback is printed."""

    def broken(**_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(main, "app", broken)
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == Status.UNKNOWN
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_every_command_failure_has_status_1_or_2() -> None:
    """Every subclass of `CommandFailed` has the status NO or UNKNOWN."""
    kinds = [CommandFailed]
    for kind in kinds:
        kinds.extend(kind.__subclasses__())
        assert kind.status in (Status.NO, Status.UNKNOWN)


def test_version_option_equals_the_version_command(run: Run) -> None:
    """`--version` prints the same as `version`, as most programs do."""
    assert run("--version") == run("version")


def test_lint_reads_a_file_of_any_name_or_standard_input(run: Run, folder: Path) -> None:
    """Problems name the file as it was given, or "standard input"."""
    (folder / "shop.txt").write_text(GOOD)
    assert run("lint", "shop.txt").stdout == "no problems found\n"
    assert run("lint", "bad.yaml").stdout.startswith("error: MW1101 bad.yaml:2 (document 1): ")
    command = [sys.executable, "-c", "from meshwright.cli.main import main; main()", "lint", "-"]
    done = subprocess.run(command, input=BAD, capture_output=True, text=True, cwd=ROOT, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("error: MW1101 standard input:2 (document 1): ")


NOTHING = {
    "lint empty": "directory empty lacks manifests: they are files that end in .yaml, .yml, .json",
    "lint comments": "comments lacks a manifest: it is empty, or has only comments",
    "lint comments/a.yaml": "comments/a.yaml lacks a manifest: it is empty, or has only comments",
    "lint -": "standard input lacks a manifest: it is empty, or has only comments",
    "lint - --json": "standard input lacks a manifest: it is empty, or has only comments",
    "lint binary/a.yaml": (
        "binary/a.yaml cannot be read: must be UTF-8 text; the byte at position 0 is not valid"
    ),
    "lint /dev/null": "/dev/null cannot be read: must be a regular file",
    "explain --mesh binary/a.yaml --from a/b --to c/d:80": (
        "binary/a.yaml cannot be read: must be UTF-8 text; the byte at position 0 is not valid"
    ),
    "migrate osm -f empty": "empty has no manifest: give a file or directory with Open Service Mesh's "
    "objects",
    "migrate osm -f comments": "comments has no manifest: give a file or directory with Open Service Mesh's "
    "objects",
    "migrate smi -f empty": "directory empty lacks manifests: they are files that end in .yaml, .yml, .json",
}


@pytest.mark.parametrize("line", NOTHING)
def test_input_without_manifests_is_an_error(run: Run, tmp_path: Path, line: str) -> None:
    """Empty input has status 2 rather than "no problems". The path may be mistyped, or a pipe broken."""
    for name in ("empty", "comments", "binary"):
        (tmp_path / name).mkdir()
    (tmp_path / "comments" / "a.yaml").write_text("# apiVersion: v1\n---\n\n--- # and\n")
    (tmp_path / "binary" / "a.yaml").write_bytes(b"\xff\xfe")
    assert run(*line.split()) == Done(2, "", f"meshwright: {NOTHING[line]}\n")


def test_input_with_an_empty_list_has_no_problems(run: Run, tmp_path: Path) -> None:
    """An empty List is a valid document, as an API server prints it.

    An unreadable file among others is a problem.
    """
    (tmp_path / "list.yaml").write_text("{apiVersion: v1, kind: List, items: []}")
    assert run("lint", "list.yaml") == Done(0, "no problems found\n", "")
    assert run("lint", ".") == Done(0, "no problems found\n", "")
    (tmp_path / "a.yaml").write_bytes(b"\xff")
    text = (
        "error: MW1105 a.yaml:1 (document 1): document: must be UTF-8 text; the byte at "
        "position 0 is not valid\n1 error\n"
    )
    assert run("lint", ".") == Done(1, text, "")


def test_certificate_for_an_unknown_name_needs_anyway(run: Run, folder: Path) -> None:
    """Without a matching workload the error suggests the likely name. `--anyway` issues the certificate."""
    arguments = ("certs", "issue-proxy", "--state", "s", "--mesh", "mesh", "--uuid", "u2", *NAME)
    done = run(*arguments)
    assert done == Done(
        1,
        "",
        "meshwright: proxy u2.store.shop matches no workload: no workload has the UUID u2 "
        "(did you mean u1.store.shop?); to issue the certificate anyway, add --anyway\n",
    )
    assert not (folder / "out").exists()
    assert run(*arguments, "--anyway").returncode == 0
    other = ("certs", "issue-proxy", "--state", "s", "--mesh", "mesh", "--uuid", "u1", "--service", "buyer")
    stderr = run(*other, *NAME[2:]).stderr
    assert "workload shop/store-1 has the UUID u1, and its proxy is u1.store.shop" in stderr


def test_certificate_without_a_name_check_is_issued_with_a_warning(run: Run, folder: Path) -> None:
    """Without server and mesh directory the name cannot be compared with workloads."""
    assert folder.is_dir()
    done = run("certs", "issue-proxy", "--state", "s", "--uuid", "u1", *NAME)
    assert (done.returncode, "the name was not compared with workloads" in done.stderr) == (0, True)


def test_proxy_certificates_are_listed_without_a_server(run: Run, folder: Path) -> None:
    """The ledger has the proxy certificates. The JSON fields that need a server are null."""
    issued = run("certs", "issue-proxy", "--state", "s", "--uuid", "u1", *NAME, "--anyway", "--json")
    serial = json.loads(issued.stdout)["serial"]
    assert folder.is_dir()
    listed = run("certs", "list", "--state", "s")
    assert (listed.returncode, listed.stderr) == (0, "")
    assert "u1.store.shop" in listed.stdout
    assert "IDENTITY" not in listed.stdout
    result = json.loads(run("certs", "list", "--state", "s", "--json").stdout)
    assert result["service_certificates"] is None
    assert [proxy_certificate["serial"] for proxy_certificate in result["proxy_certificates"]] == [serial]
    shown = json.loads(run("certs", "show", "u1", "--state", "s", "--json").stdout)
    assert shown == result | {"participants": None}
    assert (
        f"proxy certificate {serial} of u1.store.shop: issued\n"
        in run(*("certs", "show", serial, "--state", "s")).stdout
    )
    nobody = run("certs", "show", "u2", "--state", "s")
    assert (nobody.returncode, nobody.stdout) == (1, "")
    assert not (folder / "none").exists()


def test_token_secret_is_shown_once_and_never_listed(run: Run, folder: Path) -> None:
    """The secret is printed, or written to a private new file, and no later output contains it."""
    shown = run("certs", "token", "create", "--state", "s", *SERVICE)
    assert shown.returncode == 0
    token = read_token(shown.stdout)
    assert f"token {token.id} can be used once, until" in shown.stderr
    arguments = ("certs", "token", "create", "--state", "s", *SERVICE, "--uuid", "u1", "--out", "token")
    written = run(*arguments, "--valid-for", "7d", "--json")
    assert (json.loads(written.stdout)["written_to"], "token" in json.loads(written.stdout)) == (
        "token",
        False,
    )
    other = read_token((folder / "token").read_text())
    assert (folder / "token").stat().st_mode & 0o777 == 0o600
    again = run(*arguments)
    assert (again.returncode, again.stdout) == (2, "")
    assert "cannot write token: File exists" in again.stderr
    for listed in (run("certs", "token", "list", "--state", "s", "--json"), again, written):
        assert not [
            join_token for join_token in (token, other) if join_token.secret in listed.stdout + listed.stderr
        ]
    revoked = run("certs", "token", "revoke", "--state", "s", token.id)
    assert revoked.stdout == f"revoked token {token.id}, used 0 of 1 times\n"
