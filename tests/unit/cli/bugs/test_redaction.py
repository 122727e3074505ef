"""Tests of redaction in bug reports: secrets are removed, and other text is kept."""

import json
import tarfile
from pathlib import Path

import pytest

from meshwright.cli.bugs import archive
from meshwright.cli.bugs.redaction import HIDDEN, of_checks, of_json, of_log, of_policies, of_text
from meshwright.cli.errors import CommandFailed

S = "planted-7yQ2mV9xK4sR1tB8"
PEM = f"-----BEGIN EC PRIVATE KEY-----\nMHcC{S}\n{S}==\n-----END EC PRIVATE KEY-----"


@pytest.mark.parametrize(
    "text",
    [
        f"GET / Authorization: Bearer {S}",
        f"authorization: {S}",
        f"Basic {S}=",
        f"Cookie: session={S}; path=/",
        f"--join-token={S}",
        f"vault_token={S} and more",
        f'{{"password":"{S}"}}',
        f"passphrase: '{S}'",
        f"https://user:{S}@host/path",
        f"hvs.{S}",
        f"eyJhbGciOi.{S}.{S}",
        f"LS0tLS1CRUdJTi{S}",
        f"aws_secret_access_key = {S}",
        PEM,
        PEM.replace("\n", "\\n"),
        PEM.partition("-----END")[0],
    ],
)
def test_secret_is_removed_from_text_json_and_logs(text: str) -> None:
    """Secrets are removed from options, headers, settings, URLs and PEM blocks, also within JSON and logs."""
    assert S not in of_text(text)
    assert S not in of_log(f"before\n{text}\nafter {text}\n")
    assert S not in json.dumps(of_json({"reason": text, "args": [text]}))
    assert S not in of_log(json.dumps({"event": text}))


@pytest.mark.parametrize(
    "text",
    [
        "secret service-cert of shop/web: pending for 3 s",
        "spiffe://cluster.local/ns/shop/sa/web",
        "certificate revoked; token bucket is empty, key 17",
        "http://127.0.0.1:9091/metrics",
        "-----BEGIN CERTIFICATE-----",
        "cluster default/shop|8080 rejected: regex too complex",
    ],
)
def test_text_without_a_secret_is_kept(text: str) -> None:
    """Text that only mentions secrets or tokens is kept, because readers of a report need it."""
    assert of_text(text) == text
    assert of_json({"secrets": [text], "type": "secret"}) == {"secrets": [text], "type": "secret"}


def test_secrets_in_json_are_known_by_the_field_names() -> None:
    """The data of a Secret, the value of a sensitive header and secret settings are hidden."""
    result = of_json(
        {
            "objects": [
                {"kind": "Secret", "data": {"a": S}, "stringData": {"b": S}, "metadata": {"name": "x"}}
            ],
            "headers": [
                {"name": "Authorization", "value": S},
                {"header": {"key": "x-api-key", "raw_value": S}},
            ],
            "settings": {
                "vault_token": S,
                "join_token": None,
                "token_file": "/run/token",
                "password": [S, 7],
            },
        }
    )
    assert result == {
        "objects": [
            {"kind": "Secret", "data": {"a": HIDDEN}, "stringData": {"b": HIDDEN}, "metadata": {"name": "x"}}
        ],
        "headers": [
            {"name": "Authorization", "value": HIDDEN},
            {"header": {"key": "x-api-key", "raw_value": HIDDEN}},
        ],
        "settings": {
            "vault_token": HIDDEN,
            "join_token": None,
            "token_file": "/run/token",
            "password": [HIDDEN, HIDDEN],
        },
    }


def test_policies_are_reduced_to_names_and_origins() -> None:
    """Values of objects and texts of problems are removed from pages, checks and logs."""
    problem = {"code": "MW1013", "object": "RoutePolicy shop/a", "field": "spec.x", "origin": "a.yaml:1"}
    page = {
        "objects": [{"kind": "RoutePolicy", "namespace": "shop", "name": "a", "value": {"set": S}}],
        "problems": [problem | {"severity": "error", "value": S, "expected": f"not {S}", "line": S}],
        "failures": [],
    }
    assert of_policies(page) == {
        "objects": [{"kind": "RoutePolicy", "namespace": "shop", "name": "a", "origin": None, "stale": None}],
        "problems": [problem | {"severity": "error"}],
        "failures": [],
    }
    checks = {"status": "failed", "checks": [{"name": "problems", "said": S}, {"name": "CA", "said": "ok"}]}
    assert of_checks(checks) == {
        "status": "failed",
        "checks": [{"name": "problems", "said": HIDDEN}, {"name": "CA", "said": "ok"}],
    }
    line = {"event": "problem", "problem": f"MW1013 a.yaml:1: RoutePolicy shop/a: spec.x is '{S}': must be x"}
    assert of_log(json.dumps(line)) == (
        json.dumps(line | {"problem": f"MW1013 a.yaml:1: RoutePolicy shop/a: {HIDDEN}"}) + "\n"
    )


def test_archive_has_mode_0600_and_replaces_no_file(tmp_path: Path) -> None:
    """An existing file is an error, and equal contents give equal bytes, so that archives can be compared."""
    files = {"b.txt": "b\n", "a/c.json": "{}\n"}
    first, second = tmp_path / "1.tar.gz", tmp_path / "2.tar.gz"
    for path in (first, second):
        archive.write(path, files, 1_700_000_000)
        assert path.stat().st_mode & 0o777 == 0o600
    assert first.read_bytes() == second.read_bytes()
    with tarfile.open(first) as made:
        assert made.getnames() == ["meshwright-bug-report/a/c.json", "meshwright-bug-report/b.txt"]
    with pytest.raises(CommandFailed, match="exists already: give another name with --out"):
        archive.write(first, files, 1)
    with pytest.raises(CommandFailed, match="cannot write"):
        archive.write(tmp_path / "nowhere" / "x", files, 1)
