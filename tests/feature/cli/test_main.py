"""Tests of commands without a server: output, messages and statuses."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from certs.custody import LEDGER_FILE
from certs.ledger.entry import LedgerEntry
from certs.ledger.sqlite import SqliteLedger
from meshwright.guard import ROOT
from meshwright.mesh.identity import ProxyName
from tests.tools.forked_cli import Done

Run = Callable[..., Done]
NAME = ("--uuid", "u", "--service", "s", "--namespace", "n")


def _issue(run: Run) -> str:
    done = run("certs", "issue-proxy", "--state", "state", *NAME, "--out", "out", "--validity-days", "2")
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[1].removeprefix("serial ")


def test_help_imports_no_heavy_package() -> None:
    """Help is printed quickly, because it loads no gRPC, aiohttp, pydantic or generated code."""
    program = "import sys, meshwright.cli.main; print([m for m in sys.argv[1:] if m in sys.modules])"
    heavy = ["grpc", "aiohttp", "pydantic", "cryptography", "google.protobuf", "yaml", "rich.table"]
    done = subprocess.run([sys.executable, "-c", program, *heavy], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_server_imports_no_optional_package(tmp_path: Path) -> None:
    """A server does not load packages of optional features, because imports cost memory and startup time."""
    program = (
        "import sys, meshwright.cli.main as main\n"
        "try: main.app(['serve', '--mesh', 'none', '--state', 'state'])\n"
        "finally: print(*(m for m in sys.argv[1:] if m in sys.modules))"
    )
    unneeded = ("rich", "dns", "meshwright.kube", "watchfiles", "multiprocessing")
    needed = ("structlog", "meshwright.providers.directory.watch", "meshwright.providers.dns.source", "grpc")
    done = subprocess.run(
        [sys.executable, "-c", program, *unneeded, *needed],
        capture_output=True,
        check=False,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert "the mesh directory none does not exist" in done.stderr
    assert done.stdout.split() == list(needed)


def test_server_without_a_cluster_imports_no_kubernetes_client() -> None:
    """Without Kubernetes neither the API client nor the source is loaded, which saves memory."""
    program = (
        "import sys, meshwright.cli.process.server_program, meshwright.controller.wiring\n"
        "theirs = ('meshwright.kube.', 'meshwright.providers.kubernetes.s')\n"
        "print([name for name in sys.modules if name == 'meshwright.kube' or name.startswith(theirs)])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "['meshwright.providers.kubernetes.scope']\n"


def test_version_prints_one_line(run: Run) -> None:
    """`version` prints one line."""
    done = run("version")
    assert (done.returncode, done.stdout.count("\n")) == (0, 1)


def test_certificate_and_bootstrap_are_created_without_a_server(run: Run, tmp_path: Path) -> None:
    """The certificate comes from the state directory.

    The bootstrap takes name and trust domain from its files.
    """
    _issue(run)
    written = ["ca.pem", "proxy.key", "proxy.pem", "trust-domain"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == written
    done = run(
        *("bootstrap", "--credentials", "out", "--ads", "127.0.0.1:1", "--admin", "127.0.0.1:2"),
        *("--protocol", "sotw", "--output", "envoy.json"),
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    made = json.loads((tmp_path / "envoy.json").read_text())
    assert made["node"] == {"id": "u.s.n", "cluster": "s.n"}
    assert made["dynamicResources"]["adsConfig"]["apiType"] == "GRPC"


def test_certificate_is_revoked_without_a_server(run: Run) -> None:
    """The answer names the proxy of the revoked certificate."""
    serial = _issue(run)
    done = run("certs", "revoke", "--state", "state", serial)
    assert (done.returncode, done.stdout) == (0, f"revoked {serial} of u.s.n\n")


def test_certificates_of_a_proxy_are_revoked_by_its_name(run: Run) -> None:
    """All its valid certificates are revoked. The second time there is none, which is status 1."""
    serials = [_issue(run), _issue(run)]
    first = run("certs", "revoke", "--state", "state", serials[0])
    assert first.returncode == 0
    third = _issue(run)
    done = run("certs", "revoke", "--state", "state", "u.s.n", "--reason", "stolen", "--json")
    assert done.returncode == 0
    result = json.loads(done.stdout)
    assert (result["name"], sorted(result["serials"])) == ("u.s.n", sorted([serials[1], third]))
    again = run("certs", "revoke", "--state", "state", "u.s.n")
    assert (again.returncode, again.stdout) == (1, "")
    assert again.stderr == "meshwright: proxy u.s.n has no valid certificate\n"


def test_revocation_names_the_join_token_that_is_still_valid(run: Run, tmp_path: Path) -> None:
    """The warning names a token that other machines can use. `--with-token` revokes the token too."""
    _issue(run)
    token = json.loads(
        run("certs", "token", "create", "--state", "state", *NAME[2:], "--uses", "3", "--json").stdout
    )["id"]
    now = datetime.now(UTC)
    serials = [f"1{digit}{'0' * 30}" for digit in "abc"]
    with SqliteLedger.open(tmp_path / "state" / LEDGER_FILE) as ledger:
        for serial, kind in zip(serials, ("join-token", "join-token", "third"), strict=True):
            name = ProxyName.parse(f"u{serial[1]}.s.n")
            joined_by, until = f"{kind} {token}", now + timedelta(days=1)
            ledger.record(LedgerEntry.issued(serial, name, now, until, term=until - now, joined_by=joined_by))
    done = run("certs", "revoke", "--state", "state", serials[0])
    assert (done.returncode, done.stdout) == (0, f"revoked {serials[0]} of ua.s.n\n")
    assert done.stderr == (
        f"meshwright: the proxy joined with token {token}, which other machines can still use, and this "
        "machine under another name: to revoke the token, run `meshwright certs token revoke "
        f"{token}`\n"
    )
    shown = run("certs", "show", "--state", "state", serials[1]).stdout
    assert f"  joined by join-token {token}\n  each renewal is valid for 1 day, as requested\n" in shown
    done = run("certs", "revoke", "--state", "state", "ub.s.n", "--with-token")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"revoked {serials[1]} of ub.s.n\nrevoked token {token}\n"
    listed = run("certs", "token", "list", "--state", "state", "--json").stdout
    assert [join_token["state"] for join_token in json.loads(listed)["join_tokens"]] == ["revoked"]
    done = run("certs", "revoke", "--state", "state", serials[2])
    assert (done.returncode, done.stderr) == (0, "")


def test_token_command_reports_a_new_ca_once(run: Run) -> None:
    """A new CA is reported, because a mistyped path has another CA than the server that machines join."""
    done = run("certs", "token", "create", "--state", "state", *NAME[2:])
    text = "meshwright: created a new CA in state, which was not a state directory before\n"
    assert (done.returncode, done.stderr.startswith(text)) == (0, True)
    done = run("certs", "token", "create", "--state", "state", *NAME[2:], "--json")
    assert (json.loads(done.stdout)["ca_made"], "new CA" in done.stderr) == (False, False)


def test_token_for_a_named_proxy_warns_that_the_name_was_not_checked(run: Run) -> None:
    """Without a server the name is not compared with workloads.

    The warning is absent with `--anyway`, and for a token without a UUID.
    """
    words = (
        "meshwright: the name was not compared with workloads, because the server is not running: "
        "give --mesh DIR"
    )
    for arguments, answer in ((NAME, True), ((*NAME, "--anyway"), False), (NAME[2:], False)):
        done = run("certs", "token", "create", "--state", "state", *arguments)
        assert (done.returncode, words in done.stderr) == (0, answer)


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "nope"),
        ("revoke", "other.s.n"),
        ("issue-proxy", *NAME, "--out", "more", "--mesh", "mesh"),
        ("token", "create", *NAME, "--mesh", "mesh"),
    ],
)
def test_negative_certificate_answer_is_json_on_request(
    run: Run, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    """The JSON has the same message as standard error."""
    (tmp_path / "mesh").mkdir()
    _issue(run)
    done = run("certs", *arguments, "--state", "state", "--json")
    assert done.returncode == 1
    assert done.stderr == f"meshwright: {json.loads(done.stdout)['why']}\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("serve",), "the setting state is missing: give --state or set MESHWRIGHT_STATE"),
        (("serve", "--state", "s"), "a source for the mesh is required: give --mesh DIR"),
        (("serve", "--mesh", "none", "--state", "s"), "the mesh directory none does not exist"),
        (("serve", "--mesh", ".", "--state", "s", "--http-address", "x"), "--http-address is 'x': must be"),
        (("proxies", "--state", "s"), "no server is running with the state directory s"),
        (("hosts", "--state", "s", "--namespace", "n"), "no server is running"),
        (("certs", "revoke", "--state", "s", "ab"), "cannot revoke serial ab: s has neither a CA"),
        (
            ("certs", "issue-proxy", "--state", "s", "--uuid", "U!", *NAME[2:], "--out", "o"),
            "common name 'U!.s.n' is not <uuid>.<service>.<namespace>",
        ),
        (("bootstrap", "--credentials", "none", "--ads", "a:1"), ""),
    ],
)
def test_failure_is_one_message_with_status_2(run: Run, arguments: tuple[str, ...], sentence: str) -> None:
    """A failure prints no traceback and nothing on standard output."""
    done = run(*arguments)
    assert done.stderr.startswith(f"meshwright: {sentence}")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


@pytest.mark.parametrize("files", ["not a certificate", ""])
def test_invalid_credentials_are_reported_with_their_files(run: Run, tmp_path: Path, files: str) -> None:
    """The message names the certificate and the key that do not belong together."""
    (tmp_path / "out").mkdir()
    for name in ("proxy.pem", "proxy.key", "ca.pem"):
        (tmp_path / "out" / name).write_text(files)
    done = run("bootstrap", "--credentials", "out", "--ads", "127.0.0.1:1")
    assert done.returncode == 2
    chain, key = (tmp_path / "out" / name for name in ("proxy.pem", "proxy.key"))
    assert done.stderr == (
        f"meshwright: {chain} and {key} do not belong together: the file of the certificate lacks a "
        "readable certificate\n"
    )


def test_invalid_environment_variable_is_named(run: Run) -> None:
    """The message names the variable as it is spelled in the environment."""
    done = run("serve", MESHWRIGHT_MESH=".", MESHWRIGHT_STATE="s", MESHWRIGHT_ADS_ADDRESS="x")
    assert done.stderr.startswith("meshwright: MESHWRIGHT_ADS_ADDRESS is 'x': must be HOST:PORT")
