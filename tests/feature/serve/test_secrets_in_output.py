"""Test that secrets in keys, tokens and the environment appear in no output."""

import json
import tarfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.tools.forked_cli import Typed
from tests.tools.leak_forms import of_key, of_keys, seen
from tests.tools.program import PROXIES, Program, Server
from tests.tools.tls_secrets import secret, self_signed

PLANTED = "planted-7yQ2mV9xK4sR1tB8"
WRITTEN = "written-3kP8wZ5nD1hJ6cF0"
"""What a user has put into policy; nobody knows that it is secret, and the server's own pages have it."""
NAME = "one.store.shop"
POLICY = f"""
apiVersion: policy.meshwright.dev/v1alpha1
kind: RoutePolicy
metadata: {{name: keyed, namespace: shop}}
spec:
  service: store
  rules: [{{headers: {{request: {{set: [{{name: x-internal, value: "{WRITTEN}"}}]}}}}}}]
---
apiVersion: policy.meshwright.dev/v1alpha1
kind: RoutePolicy
metadata: {{name: wrong, namespace: shop}}
spec: {{service: store, rules: [{{timeout: {{request: "{WRITTEN}"}}}}]}}
"""
PAIR = self_signed("shop.example")
GATEWAY = f"""
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {{name: meshwright}}
spec: {{controllerName: meshwright.dev/gateway-controller}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: edge, namespace: shop}}
spec:
  gatewayClassName: meshwright
  listeners:
  - {{name: good, port: 14443, protocol: HTTPS, tls: {{certificateRefs: [{{name: good}}]}}}}
  - {{name: bad, port: 14444, protocol: HTTPS, tls: {{certificateRefs: [{{name: bad}}]}}}}
---
apiVersion: meshwright.dev/v1alpha1
kind: Workload
metadata: {{name: edge, namespace: shop}}
spec: {{address: 127.0.0.9, serviceAccount: edge, uuid: edge, gateway: edge}}
---
{PAIR.manifest("good", "shop")}
---
{secret("bad", {"tls.crt": PAIR.key, "tls.key": PAIR.key + b"more"}, "shop")}
"""
"""A gateway with a Secret, and another Secret whose key is in the wrong place too."""


@pytest.fixture
def program(tmp_path: Path, typed: Typed) -> Iterator[Program]:
    """The program with a secret in its environment."""
    made = Program(tmp_path / "state", tmp_path, typed)
    made.environment |= {"MESHWRIGHT_TOKEN": PLANTED, "VAULT_TOKEN": PLANTED, "KUBECONFIG_TOKEN": PLANTED}
    yield made
    made.end()


def asked(server: Server, url: str, accept: str) -> bytes:
    """Return a page's body, whatever its status."""
    request = urllib.request.Request(url, headers={"Accept": accept})  # noqa: S310 - http only
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - http only
            result: bytes = answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.read()
    return result


def pages(program: Program, server: Server) -> bytes:
    """Return every debug page, as JSON and HTML, of the mesh and of one proxy."""
    debug = f"http://{server.bound['debug']}"
    paths = json.loads(asked(server, f"{debug}/debug", "application/json"))
    queries = ("", f"?proxy={NAME}", *(f"?proxy={NAME}&section={each}" for each in ("secrets", "history")))
    result = b""
    for path in paths:
        for query in queries:
            for accept in ("application/json", "text/html"):
                result += asked(server, f"{debug}{path}{query}", accept)
    for difference in ("secret&name=service-cert", "cluster&name=x"):
        result += asked(server, f"{debug}/debug/xds/diff?proxy={NAME}&type={difference}", "text/html")
    assert len(paths) > 10
    assert NAME.encode() in result
    return result


def commands(program: Program, server: Server) -> bytes:
    """Return the output and errors of commands, including mistyped ones."""
    state = ("--state", str(program.state))
    token = program.files / "token"
    lines = (
        ("certs", "list", *state),
        ("certs", "list", *state, "--json"),
        ("certs", "show", NAME, *state),
        ("certs", "show", NAME, *state, "--json"),
        ("certs", "token", "list", *state, "--json"),
        ("certs", "token", "revoke", token.read_text().strip(), *state),
        ("certs", "revoke", token.read_text().strip(), *state),
        ("certs", "show", token.read_text().strip(), *state),
        ("certs", "rebuild-ledger", *state),
        ("proxies", *state, "--json"),
        ("proxy", "show", NAME, "secrets", *state),
        ("sources", *state, "--json"),
        ("check", *state, "--json"),
        ("bootstrap", "--credentials", str(program.files / "one"), "--ads", "127.0.0.1:1"),
        ("agent", "check", "--credentials", str(program.files / "one"), "--run", str(program.files / "run")),
        ("diff", str(program.mesh), *state),
        ("lint", str(program.mesh)),
        ("lint", str(program.mesh), "--json"),
        ("explain", "GET", "/", "--from", "shop/edge", "--to", "shop/store", *state),
        ("serve", "--settings"),
    )
    done = (program.run(*line) for line in lines)
    result = "".join(f"{out}{complaint}" for _, out, complaint in done)
    status, out, complaint = program.issue("two", program.files / "again")
    assert status == 0, complaint
    return (result + out + complaint).encode()


def report(program: Program, server: Server) -> bytes:
    """Return the content of a bug report, with secrets in a log file and in valid and invalid policy."""
    (program.mesh / "keyed.yaml").write_text(POLICY)
    server.until(lambda: "RoutePolicy shop/wrong" in server.log_path.read_text())
    log, out = program.files / "some.log", program.files / "report.tar.gz"
    key = (program.files / "one" / "proxy.key").read_text()
    log.write_text(f"kept: a line\nAuthorization: Bearer {PLANTED}\n{key}\n{json.dumps({'key': key})}\n")
    logged = ("--log", str(log), "--log", str(server.log_path))
    status, text, complaint = program.run(
        "bug-report", "--state", str(program.state), "--out", str(out), *logged
    )
    assert (status, complaint, "not in it" in text) == (0, "", False), text
    with tarfile.open(out) as made:
        files = {tar_info.name: made.extractfile(tar_info) for tar_info in made if tar_info.isfile()}
        texts = {name.partition("/")[2]: file.read() for name, file in files.items() if file is not None}
    about = json.loads(texts["about.json"])
    assert sorted([*about["files"], "about.json"]) == sorted(texts)
    assert {f"proxies/{NAME}/history.json", "check.json", "pages/config.json"} <= texts.keys()
    assert b'"keyed"' in texts["pages/policies.json"]
    assert b'"RoutePolicy shop/wrong"' in texts["pages/policies.json"]
    assert b"meshwright_proxies" in texts["metrics.txt"]
    assert b"kept: a line\n" in texts["logs/some.log"]
    result = b"".join(texts.values()) + text.encode()
    assert WRITTEN.encode() not in result
    assert b": [withheld]" in texts[f"logs/{server.log_path.name}"]
    return result


def logs(program: Program, server: Server) -> bytes:
    """Return the server's log at debug level and its other output."""
    result = server.log_path.read_bytes() + server.log_path.with_suffix(".out").read_bytes()
    assert b'"level": "debug"' in result
    return result


def probes(program: Program, server: Server) -> bytes:
    """Return metrics and health."""
    return "".join(server.get(path)[1] for path in ("/metrics", "/healthz/ready", "/healthz/live")).encode()


def processes(program: Program, server: Server) -> bytes:
    """Return the command line, which every user of the machine can read."""
    return Path(f"/proc/{server.process.pid}/cmdline").read_bytes()


PLACES: Mapping[str, Callable[[Program, Server], bytes]] = {
    "pages": pages,
    "commands": commands,
    "probes": probes,
    "processes": processes,
    "report": report,
    "logs": logs,  # last, so that the log covers all requests before
}


def test_secrets_are_in_no_page_command_log_or_report(program: Program) -> None:
    """The server has served a proxy, issued a token, and shown all its pages.

    The positive control is a key file.
    """
    (program.mesh / "gateway.yaml").write_text(GATEWAY)
    program.issued(*PROXIES)
    server = program.serve("--log-level", "debug")
    assert program.served(server, "one")
    (program.mesh / "gateway.yaml").write_text(GATEWAY.replace("name: bad", "name: worse"))  # into history
    status, _, complaint = program.run(
        *("certs", "token", "create", "--state", str(program.state), "--service", "store"),
        *("--namespace", "shop", "--out", str(program.files / "token")),
    )
    assert status == 0, complaint
    shown = {name: place(program, server) for name, place in PLACES.items()}
    token = (program.files / "token").read_text().strip().split(".")[1]
    secrets = of_keys(program.state) | of_keys(program.files / "one") | of_keys(program.files / "two")
    assert len(secrets) >= 5  # the CA's, the server's, a service's, and those of two proxies
    secrets |= {"the gateway's key": of_key(PAIR.key), "a line of its PEM": PAIR.key.splitlines()[1]}
    secrets |= {"the token": token.encode(), "the environment": PLANTED.encode()}
    assert {name: result for name, place in shown.items() if (result := seen(place, secrets))} == {}
    assert seen((program.files / "one" / "proxy.key").read_bytes(), secrets)  # positive control
    assert b"Secret shop/worse" in shown["pages"]  # the server has read both Secrets
    assert seen(GATEWAY.encode(), secrets)  # in base64 of PEM, as a Secret has it
    server.stop()
