"""Tests of `meshwright explain` and `meshwright lint`, offline and against a server."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from catalog.store.view import View
from meshwright.admin.pages.calls.explain import answer
from meshwright.admin.pages.calls.fields import QueryError
from meshwright.cli.offline.mesh import read
from meshwright.mesh.problems.problem import Problems
from tests.tools import libyaml
from tests.tools.forked_cli import ROOT, Done
from tests.unit.cli.api import answering

Run = Callable[..., Done]
ASK = ("--from", "shop/buyer", "--to", "shop/store:80", "GET", "/books?x=1")
UNKNOWN, NOT_ASKED = (
    "  It is not known whether the sidecars enforce this decision:",
    "  Whether sidecars enforce this decision was not evaluated:",
)
MESH = """
apiVersion: v1
kind: Service
metadata: {name: store, namespace: shop}
spec: {selector: {app: store}, ports: [{name: http, port: 80, targetPort: 8080}]}
---
apiVersion: meshwright.dev/v1alpha1
kind: Workload
metadata: {name: store-1, namespace: shop, labels: {app: store}}
spec: {address: 10.0.0.1, uuid: u1, serviceAccount: store}
---
apiVersion: meshwright.dev/v1alpha1
kind: Workload
metadata: {name: buyer-1, namespace: shop}
spec: {address: 10.0.0.2, uuid: u2, serviceAccount: buyer}
"""


@pytest.fixture
def mesh(tmp_path: Path) -> Path:
    """Create a directory with a store that no workload may call."""
    directory = tmp_path / "mesh"
    directory.mkdir()
    (directory / "mesh.yaml").write_text(MESH)
    return directory


def test_printed_policy_allows_a_denied_request(run: Run, mesh: Path) -> None:
    """A denied request has status 1.

    With the printed YAML added, the request is allowed and the status is 0.
    """
    denied = run("explain", "--mesh", str(mesh), *ASK)
    assert (denied.returncode, denied.stderr) == (1, "")
    assert denied.stdout.startswith("shop/buyer to shop/store:80 GET /books?x=1: unreachable\n")
    assert "    Service shop/store, mesh.yaml:2 (document 1)\n" in denied.stdout
    added = denied.stdout.partition("# This policy would allow the request:\n")[2]
    assert [item["kind"] for item in libyaml.load_all(added)] == [
        "HTTPRouteGroup",
        "TrafficTarget",
    ]
    (mesh / "added.yaml").write_text(added)
    allowed = run("explain", "--mesh", str(mesh), *ASK)
    assert (allowed.returncode, allowed.stderr) == (0, "")
    assert allowed.stdout.splitlines()[0].endswith(": allowed")
    assert ". The request is allowed.\n" in allowed.stdout
    assert "  Whether sidecars enforce this decision was not evaluated:\n" in allowed.stdout
    assert run("lint", "--strict", str(mesh)).returncode == 0


def test_printed_policy_is_not_promised_to_be_sufficient(run: Run, mesh: Path) -> None:
    """If another object blocks the call too, the heading says so.

    The YAML alone then does not allow the call.
    """
    (mesh / "narrow.yaml").write_text(
        """
apiVersion: v1
kind: Namespace
metadata: {name: shop, annotations: {meshwright.dev/egress-services: none}}
"""
    )
    denied = run("explain", "--mesh", str(mesh), *ASK)
    assert "# This policy would allow the request:" not in denied.stdout
    added = denied.stdout.partition(
        "# This policy is missing, but more is in the way, as the last step explains:\n"
    )[2]
    (mesh / "added.yaml").write_text(added)
    still = run("explain", "--mesh", str(mesh), *ASK)
    assert (still.returncode, "---" in still.stdout) == (1, False)
    assert " The cause is not a missing policy: Namespace shop limits the Services that" in still.stdout
    (mesh / "narrow.yaml").unlink()
    assert run("explain", "--mesh", str(mesh), *ASK).returncode == 0


def test_explain_json_has_the_given_headers_and_a_host(run: Run, mesh: Path) -> None:
    """The JSON has the same answer, and a host header is added if none is given."""
    done = run("explain", "--mesh", str(mesh), "--json", "--header", "X-Tag: a: b", *ASK)
    result = json.loads(done.stdout)
    assert result["headers"] == [["X-Tag", "a: b"], ["host", "store.shop"]]
    assert (result["answer"], result["backends"], result["besides"]) == ("unreachable", [], [])


LINE = {
    "start_time": "2026-11-22T10:21:51.693Z",
    "caller": "spiffe://cluster.local/ns/shop/sa/buyer",
    "local_address": "10.0.0.1:8080",
    "upstream_cluster": "shop/store|8080|local",
    "route_name": "local",
    "method": "GET",
    "path": "/books?x=1",
    "authority": "store.shop",
    "user_agent": "curl/8",
    "response_code": 403,
    "response_code_details": "rbac_access_denied_matched_policy[none]",
    "policy": None,
    "policy_looked_for": "shop/buyers",
}
OWN = LINE | {"caller": None, "upstream_cluster": "shop/store|8080", "route_name": "service:shop/store"}
WAS = (
    "logged at 2026-11-22T10:21:51.693Z: 403 (rbac_access_denied_matched_policy[none]), "
    "no rule of TrafficTarget shop/buyers fitted"
)


def test_access_log_line_is_explained_like_a_question(run: Run, mesh: Path) -> None:
    """The steps equal those of the question in words, with the logged result added."""
    where = ("explain", "--mesh", str(mesh))
    agent = ("--header", "host: store.shop", "--header", "user-agent: curl/8")
    first, *steps = run(*where, *ASK, *agent).stdout.splitlines()
    done = run(*where, json.dumps(LINE))
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines() == [first, WAS, *steps]
    own = run(*where, "--from", "shop/buyer", json.dumps(OWN))
    assert own.stdout.splitlines() == [first, WAS, *steps]
    result = json.loads(run(*where, "--json", "--header", "host: other", json.dumps(LINE)).stdout)
    assert result["headers"] == [["user-agent", "curl/8"], ["host", "other"]]
    assert result["logged"]["policy_looked_for"] == "shop/buyers"


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("{}", "the line must be one of a sidecar's access log: a JSON object with start_time and local"),
        (
            json.dumps(OWN),
            "the log line does not name the caller: give --from if it is from the caller's own sidecar, or ",
        ),
        (
            json.dumps(LINE | {"caller": "x"}),
            "caller is 'x': must be spiffe://<trust domain>/ns/<namespace>/sa/<service account>",
        ),
        (
            json.dumps(LINE | {"local_address": "10.0.0.1:9"}),
            "no Service of the mesh is found at '10.0.0.1:9': it may have been deleted since; give --to",
        ),
        ("-", "the input has 0 lines: give one line of an access log, for example with `tail -1`"),
    ],
)
def test_missing_detail_of_a_log_line_is_asked_for(run: Run, mesh: Path, line: str, sentence: str) -> None:
    """The error names the option that gives the missing detail."""
    done = run("explain", "--mesh", str(mesh), line)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"meshwright: {sentence}")


OUT = ("--from", "shop/buyer", "--to", "203.0.113.1:443")
CONFIG = """
apiVersion: config.openservicemesh.io/v1alpha2
kind: MeshConfig
metadata: {name: osm-mesh-config, namespace: default}
spec: {traffic: {enableEgress: false}}
"""


def test_external_call_is_denied_and_the_printed_egress_allows_it(run: Run, mesh: Path) -> None:
    """The printed Egress allows the call; a MeshConfig that denies external calls is named."""
    closed = run("explain", "--mesh", str(mesh), *OUT)
    assert (closed.returncode, closed.stderr) == (1, "")
    assert closed.stdout.startswith("shop/buyer to 203.0.113.1:443: unreachable\n")
    assert "calls out of the mesh are not admitted by default" in closed.stdout
    egress = closed.stdout.partition("# This policy would allow the request:\n")[2]
    (mesh / "added.yaml").write_text(egress)
    assert run("explain", "--mesh", str(mesh), *OUT).returncode == 0
    (mesh / "added.yaml").write_text(CONFIG)
    there = run("explain", "--mesh", str(mesh), "--json", *OUT)
    result = json.loads(there.stdout)
    assert (there.returncode, result["answer"]) == (1, "unreachable")
    assert result["missing"] == [*libyaml.load_all(egress)]
    (named,) = (step for step in result["steps"] if step["objects"])
    assert named["text"].startswith(
        "MeshConfig default/osm-mesh-config does not admit calls out of the mesh; spec.traffic.enable"
    )
    assert named["objects"][0]["origin"] == "added.yaml:2 (document 1)"


def test_connection_that_bypasses_the_sidecar_is_allowed(run: Run, mesh: Path) -> None:
    """In explicit interception all calls except those to upstreams bypass the sidecar.

    In transparent interception uncaptured IPv6 does.
    """
    v6 = ("--from", "shop/buyer", "--to", "[2001:db8::1]:443")
    assert "IPv6 connections bypass the sidecar." in run("explain", "--mesh", str(mesh), *v6).stdout
    assert run("explain", "--mesh", str(mesh), *v6).returncode == 0
    mapped = ("--from", "shop/buyer", "--to", "[::ffff:203.0.113.1]:443")
    assert (
        run("explain", "--mesh", str(mesh), *mapped).returncode == 1
    )  # an IPv4-mapped address, sent as IPv4
    text = (mesh / "mesh.yaml").read_text()
    (mesh / "mesh.yaml").write_text(text.replace("uuid: u2,", "uuid: u2, applicationAddress: 127.0.0.1,"))
    explicit = run("explain", "--mesh", str(mesh), *OUT)
    assert (explicit.returncode, "bypass the sidecar." in explicit.stdout) == (0, True)


@pytest.mark.parametrize(
    ("to", "said"),
    [
        ("10.0.0.1:80", "this is the address of workload shop/store-1: ask about a Service of this workload"),
        ("10.96.0.9:80", "this is the address of Service shop/known: ask about shop/known:80"),
        ("[::ffff:10.96.0.9]:80", "this is the address of Service shop/known: ask about shop/known:80"),
        (
            "203.0.113.1",
            "must be <namespace>/<service>:<port>, or outside the mesh <IP or host>:<port>",
        ),
        ("203.0.113.1:0", "the port must be 1 to 65535"),
        ("203.0.113.1:99999", "the port must be 1 to 65535"),
        ("shop/known:65536", "the port must be 1 to 65535"),
    ],
)
def test_address_within_the_mesh_is_refused_as_an_external_one(
    run: Run, mesh: Path, to: str, said: str
) -> None:
    """The error names the workload or Service of the address, and the right question."""
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: known, namespace: shop}\n"
    (mesh / "known.yaml").write_text(service + "spec: {clusterIP: 10.96.0.9, ports: [{port: 80}]}\n")
    done = run("explain", "--mesh", str(mesh), "--from", "shop/buyer", "--to", to)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"meshwright: to is '{to}': {said}")


@dataclass
class OneView:
    """Fake of `admin.reading.MeshReading` for this page."""

    shown: View
    wrong: Problems = ()

    def view(self) -> View:
        """Return the view."""
        return self.shown

    async def problems(self) -> Problems:
        """Return the problems."""
        return self.wrong

    def proxies(self) -> tuple[()]:
        """Return no proxies."""
        return ()

    def streams(self) -> tuple[()]:
        """Return no streams."""
        return ()

    def left_out(self) -> tuple[()]:
        """Return no excluded parts."""
        return ()


async def test_explain_of_a_server_adds_whether_policy_is_enforced(
    run: Run, mesh: Path, tmp_path: Path
) -> None:
    """The steps equal the offline ones, and an error of the server is shown.

    Enforcement is unknown here, because no sidecar has ever connected.
    """
    reading: Any = OneView(read(mesh).view)
    async with answering(reading, tmp_path):

        async def explain(*arguments: str) -> Done:
            return await asyncio.to_thread(run, "explain", *arguments)

        header = ("--header", "a: b", "--header", "a: c")
        from_server = await explain("--state", str(tmp_path), *header, *ASK)
        first, *steps = from_server.stdout.splitlines()
        offline = (await explain("--mesh", str(mesh), *header, *ASK)).stdout.splitlines()
        assert first == f"{offline[0]} by policy, but it is not known whether the sidecars enforce this"
        assert steps[: steps.index(UNKNOWN)] == offline[1 : offline.index(NOT_ASKED)]
        by_line = (await explain("--state", str(tmp_path), json.dumps(LINE))).stdout.splitlines()
        assert by_line[1] == WAS
        message = "    u2.buyer.shop is not connected"
        assert steps[steps.index(UNKNOWN) + 1] == message
        assert (from_server.returncode, from_server.stderr) == (1, "")
        refused = await explain("--state", str(tmp_path), "--from", "x", "--to", "y")
        assert refused == Done(2, "", "meshwright: from is 'x': must be <namespace>/<service account>\n")


NO_SERVER = (
    "no server is running with the state directory none: start `meshwright serve`, or give another "
    "directory with --state"
)
NOBODY = (
    "a mesh is required: give --state DIR of the running server, --mesh DIR for a directory of manifests, or "
    "--kubernetes for a cluster"
)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (ASK, NOBODY),
        (("--mesh", "none", *ASK), "directory none cannot be read: no such file or directory"),
        (("--state", "none", *ASK), NO_SERVER),
        (
            ("--mesh", "mesh", "--from", "a/b", "--to", "c/d"),
            "to is 'c/d': must be <namespace>/<service>:<port>, or outside the mesh <IP or host>:<port>",
        ),
        (("--mesh", "mesh", *ASK, "--header", "x"), "header is 'x': must be 'name: value'"),
        (("--mesh", "mesh", *ASK[:4], "GET", "x"), "path is 'x': must begin with /, or be a URL"),
    ],
)
def test_invalid_explain_arguments_give_one_sentence(
    run: Run, mesh: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    """The error is one sentence with status 2."""
    done = run("explain", *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"meshwright: {sentence}\n")


BAD = """
apiVersion: access.smi-spec.io/v1alpha3
kind: TrafficTarget
metadata: {name: t, namespace: shop}
spec:
  destination: {kind: ServiceAccount, name: store, namespace: shop}
  sources: [{kind: ServiceAccount, name: buyer, namespace: shop}]
  rules: [{kind: HTTPRouteGroup, name: gone}]
---
apiVersion: v1
kind: Service
metadata: {name: empty, namespace: shop}
spec: {selector: {app: none}, ports: [{name: http, port: 80}]}
"""


def test_lint_reports_the_server_s_problems(run: Run, mesh: Path) -> None:
    """Errors of reading and of references have their origin, and the status is 1 for CI."""
    good = run("lint", str(mesh))
    assert (good.returncode, good.stdout, good.stderr) == (0, "no problems found\n", "")
    (mesh / "bad.yaml").write_text(BAD)
    (mesh / "broken.yaml").write_text("kind: [")
    bad = run("lint", str(mesh))
    assert bad.returncode == 1
    lines = bad.stdout.splitlines()
    assert lines[0].startswith("error: MW2001 bad.yaml:2 (document 1): TrafficTarget shop/t: ")
    assert [line.split()[:2] for line in lines] == [
        ["error:", "MW2001"],
        ["error:", "MW2004"],
        ["warning:", "MW2020"],
        ["error:", "MW1101"],
        ["3", "errors,"],
    ]
    assert [load["code"] for load in json.loads(run("lint", "--json", str(mesh)).stdout)] == [
        "MW2001",
        "MW2004",
        "MW2020",
        "MW1101",
    ]


@pytest.mark.parametrize("also", ["", ", {name: other, port: 81, targetPort: 8080, appProtocol: http}"])
def test_wrong_target_port_is_reported_instead_of_the_selector(run: Run, mesh: Path, also: str) -> None:
    """The error names the target port, because the selector matches workloads.

    Another correct port of the Service changes nothing.
    """
    text = (mesh / "mesh.yaml").read_text()
    text = text.replace("targetPort: 8080}]", f"targetPort: wbe}}{also}]")
    ports = "serviceAccount: store, ports: [{name: web, port: 8080}, {name: admin, port: 9}]"
    (mesh / "mesh.yaml").write_text(text.replace("serviceAccount: store", ports))
    (result,) = json.loads(run("lint", "--json", str(mesh)).stdout)
    assert (result["code"], result["field"], result["value"]) == ("MW2020", "spec.ports.targetPort", "wbe")
    assert result["expected"] == (
        "A port of the workloads behind it with this name does not exist, so calls to port 80 fail. Use "
        "one of admin, web (did you mean web?)."
    )
    # An EndpointSlice of another controller may have a port of this name.
    (mesh / "slice.yaml").write_text(
        "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\naddressType: IPv4\n"
        "metadata: {name: s, namespace: shop, labels: {kubernetes.io/service-name: store}}\n"
        "ports: [{name: http, port: 8080}]\nendpoints: [{addresses: [10.0.0.9]}]\n"
    )
    answer = json.loads(run("lint", "--json", str(mesh)).stdout)
    assert "spec.ports.targetPort" not in {item["field"] for item in answer}


def test_strict_lint_fails_for_warnings(run: Run, mesh: Path) -> None:
    """A Service without workloads is a warning; a missing directory has status 2."""
    (mesh / "bad.yaml").write_text(BAD.partition("---")[2])
    assert run("lint", str(mesh)).returncode == 0
    assert run("lint", "--strict", str(mesh)).returncode == 1
    assert run("lint", "none").returncode == 2


def test_page_of_codes_equals_the_program_s_output(run: Run) -> None:
    """docs/debug/codes.md is generated with `meshwright lint --codes`."""
    done = run("lint", "--codes")
    assert (done.returncode, done.stdout) == (0, (ROOT / "docs" / "debug" / "codes.md").read_text())
    text = (
        "manifests are required: give a directory or a file, - for standard input, --kubernetes for a "
        "cluster, or --codes for the meaning of codes"
    )
    assert run("lint").stderr == f"meshwright: {text}\n"


EDGE = """
apiVersion: meshwright.dev/v1alpha1
kind: Workload
metadata: {name: edge-1, namespace: shop}
spec: {address: 10.0.0.9, uuid: u9, serviceAccount: edge, gateway: front}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: meshwright}
spec: {controllerName: meshwright.dev/gateway-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: front, namespace: shop}
spec:
  gatewayClassName: meshwright
  listeners: [{name: http, port: 8080, protocol: HTTP, hostname: '*.shop.example'}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: store, namespace: shop}
spec:
  parentRefs: [{name: front}]
  rules: [{matches: [{path: {value: /books}}], backendRefs: [{name: store, port: 80}]}]
"""
AT_EDGE = ("--gateway", "shop/front", "--host", "eu.shop.example")


def test_request_to_a_gateway_is_explained_and_the_printed_policy_allows_it(run: Run, mesh: Path) -> None:
    """The port is the listener's; the remedy names the gateway's ServiceAccount as the source."""
    (mesh / "edge.yaml").write_text(EDGE)
    denied = run("explain", "--mesh", str(mesh), *AT_EDGE, "GET", "/books/1")
    assert (denied.returncode, denied.stderr) == (1, "")
    first, *_ = denied.stdout.splitlines()
    asked = "a client outside the mesh to Gateway shop/front:8080 GET eu.shop.example/books/1"
    assert first == f"{asked}: refused: 403"
    assert "HTTPRoute shop/store, spec.rules[0].matches[0], decides the request" in denied.stdout
    _, _, policy = denied.stdout.partition("# This policy would allow the request:\n")
    (mesh / "policy.yaml").write_text(policy)
    allowed = run("explain", "--mesh", str(mesh), *AT_EDGE, "GET", "/books/1")
    assert (allowed.returncode, allowed.stdout.splitlines()[0]) == (0, f"{asked}: allowed")
    lost = run("explain", "--mesh", str(mesh), *AT_EDGE, "GET", "/other")
    assert (lost.returncode, "The gateway answers 404." in lost.stdout) == (1, True)


@pytest.mark.parametrize(
    ("host", "called"),
    [
        ("EU.shop.example:8080", "eu.shop.example"),
        ("my_host.shop.example", "my_host.shop.example"),
        ("192.0.2.1:80", "192.0.2.1"),
        ("[2001:db8::1]:80", "2001:db8::1"),
        ("2001:db8::1", "2001:db8::1"),
    ],
)
def test_host_of_a_request_is_a_name_or_an_address(run: Run, mesh: Path, host: str, called: str) -> None:
    """The port does not count."""
    (mesh / "edge.yaml").write_text(EDGE)
    done = run("explain", "--mesh", str(mesh), "--gateway", "shop/front", "--host", host, "--json")
    assert json.loads(done.stdout)["path"] == f"{called}/"


@pytest.mark.parametrize(
    ("query", "named"),
    [
        (
            {"gateway": "shop/front", "to": "shop/store:80"},
            "gateway takes the place of from and to: give the one or the others",
        ),
        ({"host": "shop.example", "from": "shop/a"}, "host is for requests to a gateway: give gateway too"),
    ],
)
def test_query_of_a_gateway_excludes_the_ends_of_a_call(
    mesh: Path, query: dict[str, str], named: str
) -> None:
    """A parameter without effect is an error, for programs that use the API too."""
    with pytest.raises(QueryError) as raised:
        answer(read(mesh).view, query, ())
    assert str(raised.value) == named


async def test_server_says_that_it_does_not_compare_gateways_and_outside_destinations(
    run: Run, mesh: Path, tmp_path: Path
) -> None:
    """The reason is not a missing server."""
    (mesh / "edge.yaml").write_text(EDGE)
    reading: Any = OneView(read(mesh).view)
    async with answering(reading, tmp_path):
        where = ("explain", "--state", str(tmp_path))
        gateway = await asyncio.to_thread(run, *where, *AT_EDGE)
        outside = await asyncio.to_thread(run, *where, *OUT)
    for done, subject in ((gateway, "a gateway"), (outside, "a destination outside the mesh")):
        lines = done.stdout.splitlines()
        assert lines[lines.index(NOT_ASKED) + 1] == (
            f"    for a call to {subject} only policy is evaluated; `meshwright proxies` shows whether the "
            "proxies of a running server have their newest configuration"
        )


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--gateway", "front"), "gateway is 'front': must be <namespace>/<gateway>[:<port>]"),
        (("--gateway", "shop/front:x"), "gateway is 'shop/front:x': must be <namespace>/<gateway>[:<port>]"),
        (("--gateway", "shop/front:99999"), "gateway is 'shop/front:99999': the port must be 1 to 65535"),
        (("--gateway", "shop/front:0"), "gateway is 'shop/front:0': the port must be 1 to 65535"),
        (
            ("--gateway", "shop/front", "--host", "https://books.example"),
            "host is 'https://books.example': must be a host name, for example shop.example",
        ),
        (
            ("--gateway", "shop/front", "GET", "https://*.example/a"),
            "path is 'https://*.example/a': must have a host name, for example shop.example",
        ),
        (
            ("--gateway", "shop/front", "--to", "shop/store:80"),
            "--gateway takes the place of --from and --to",
        ),
        (("--host", "shop.example", "--from", "a/b"), "--host is for requests to a gateway"),
    ],
)
def test_wrong_questions_about_gateways_name_the_valid_form(
    run: Run, mesh: Path, arguments: tuple[str, ...], named: str
) -> None:
    """Status 2, and one sentence."""
    result = run("explain", "--mesh", str(mesh), *arguments)
    assert (result.returncode, named in result.stderr) == (2, True)


async def test_gateway_is_explained_by_a_server_as_by_its_manifests(
    run: Run, mesh: Path, tmp_path: Path
) -> None:
    """The steps and the printed policy are the same."""
    (mesh / "edge.yaml").write_text(EDGE)
    reading: Any = OneView(read(mesh).view)
    async with answering(reading, tmp_path):
        question = ("explain", "--state", str(tmp_path), *AT_EDGE, "--header", "a: b", "GET", "/books")
        from_server = await asyncio.to_thread(run, *question)
    offline = run("explain", "--mesh", str(mesh), *AT_EDGE, "--header", "a: b", "GET", "/books")
    assert from_server == offline
    assert (offline.returncode, offline.stderr) == (1, "")
    assert "spec.rules[0].matches[0], decides the request: its path begins with /books." in offline.stdout


BAD_EDGE = EDGE.replace("port: 8080, protocol: HTTP", "port: 99999, protocol: HTTP")
BAD_PORT = "MW1013 spec.listeners[0].port is 99999: must be a whole number from 1 to 65535"


async def test_refused_gateway_is_explained_with_its_problem(run: Run, mesh: Path, tmp_path: Path) -> None:
    """By manifests and by a server."""
    (mesh / "edge.yaml").write_text(BAD_EDGE)
    loaded = read(mesh)
    reading: Any = OneView(loaded.view, loaded.problems)
    async with answering(reading, tmp_path):
        from_server = await asyncio.to_thread(run, "explain", "--state", str(tmp_path), *AT_EDGE)
    offline = run("explain", "--mesh", str(mesh), *AT_EDGE)
    assert offline.stdout.splitlines()[2:5] == [
        f"    {BAD_PORT}",
        "      Gateway shop/front, edge.yaml:12 (document 3)",
        "  1. Gateway shop/front exists, but is refused, so the mesh does not serve the gateway.",
    ]
    assert from_server == offline


def test_refused_gateway_is_named_at_its_workload(run: Run, mesh: Path) -> None:
    """The advice is to correct the Gateway, or the class, and not to create it."""

    def expected(code: str, text: str) -> str:
        (mesh / "edge.yaml").write_text(text)
        problems = json.loads(run("lint", "--json", str(mesh)).stdout)
        return next(str(item["expected"]) for item in problems if item["code"] == code)

    assert expected("MW2180", BAD_EDGE) == (
        "Gateway shop/front exists, but is refused, so this workload serves nothing. Correct the Gateway: "
        f"{BAD_PORT}"
    )
    bad_class = EDGE.replace("controllerName: meshwright.dev/gateway-controller", "controllerName: m")
    assert expected("MW2177", bad_class) == (
        "This GatewayClass exists, but is refused, so the Gateway is not served. Correct the GatewayClass: "
        'MW1013 spec.controllerName is "m": must be a domain and a path, for example example.com/gateways, '
        "at most 253 characters"
    )


async def test_line_of_a_gateway_is_explained_as_a_request_from_outside(
    run: Run, mesh: Path, tmp_path: Path
) -> None:
    """By manifests and by a server, without any option."""
    (mesh / "edge.yaml").write_text(EDGE)
    line = {
        "start_time": "2026-11-22T10:21:51.693Z",
        "caller": None,
        "local_address": "10.0.0.9:8080",
        "method": "GET",
        "path": "/other",
        "authority": "eu.shop.example:8080",
        "response_code": 404,
        "response_code_details": "route_not_found",
    }
    reading: Any = OneView(read(mesh).view)
    async with answering(reading, tmp_path):
        question = ("explain", "--state", str(tmp_path), json.dumps(line))
        from_server = await asyncio.to_thread(run, *question)
    offline = run("explain", "--mesh", str(mesh), json.dumps(line))
    first, logged, *_ = offline.stdout.splitlines()
    asked = "a client outside the mesh to Gateway shop/front:8080 GET eu.shop.example/other"
    assert (first, logged) == (
        f"{asked}: refused: 404",
        "logged at 2026-11-22T10:21:51.693Z: 404 (route_not_found)",
    )
    assert (from_server, offline.returncode) == (offline, 1)
