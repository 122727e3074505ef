"""Hostile text in everything that a command may read, written to take over a terminal."""

import http.server
import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

FORGED: Final = "FORGED: all is well"
TEXT: Final = f"abc\x1b[2J\x1b]0;b\x07\x9b31m\u202ec\u2028\x7f\x08\r{FORGED}\n{FORGED}\td"
"""It clears the screen, changes the title and the colour, turns text around, and begins a line of its own."""

MANIFEST: Final = json.dumps(TEXT)  # as YAML has it too
POD: Final = (
    f"{{apiVersion: v1, kind: Pod, metadata: {{name: {MANIFEST}, namespace: shop, labels: {{a: {MANIFEST}}}, "
    f"annotations: {{{MANIFEST}: {MANIFEST}}}}}, "
    f"spec: {{hostNetwork: true, containers: [{{name: {MANIFEST}, image: {MANIFEST}}}]}}}}\n"
)
MESH: Final = f"""
apiVersion: v1
kind: Service
metadata: {{name: {MANIFEST}, namespace: shop}}
---
apiVersion: {MANIFEST}
kind: {MANIFEST}
metadata: {{name: a}}
---
apiVersion: v1
kind: Namespace
metadata: {{name: shop, {MANIFEST}: 1, annotations: {{{json.dumps("meshwright.dev/" + TEXT)}: a}}}}
---
apiVersion: split.smi-spec.io/v1alpha4
kind: TrafficSplit
metadata: {{name: split, namespace: shop}}
spec: {{service: {MANIFEST}, backends: [{{service: {MANIFEST}, weight: 1}}], {MANIFEST}: {MANIFEST}}}
---
apiVersion: specs.smi-spec.io/v1alpha4
kind: HTTPRouteGroup
metadata: {{name: group, namespace: shop}}
spec: {{matches: [{{name: {MANIFEST}, pathRegex: {json.dumps("/" + TEXT + "(")}, methods: [{MANIFEST}]}}]}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: route, namespace: shop}}
spec:
  parentRefs: [{{group: "", kind: Service, name: {MANIFEST}, sectionName: {MANIFEST}}}]
  rules: [{{name: {MANIFEST}, matches: [{{path: {{type: {MANIFEST}, value: {MANIFEST}}}}}]}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: dropped, namespace: shop}}
spec:
  parentRefs: [{{group: "", kind: Service, name: store}}]
  rules:
  - matches: [{{headers: [{{type: RegularExpression, name: a, value: {json.dumps(TEXT + "(")}}}]}}]
"""

_PLACE: Final = {"namespace": TEXT, "service": TEXT, "port": 1}
_ROW: Final = {
    **dict.fromkeys(("source", "destination", "backend"), _PLACE),
    **dict.fromkeys(("protocol", "proxy", "direction", "route", "retries"), TEXT),
    "success": 1,
    "failures": TEXT,
    "connections": TEXT,
}
_REQUEST: Final = {
    **dict.fromkeys(("at", "caller", "address", "port", "method", "authority", "path", "details"), TEXT),
    "proxy": f"{TEXT}.b.c",
    "status": TEXT,
    "grpc_status": TEXT,
    "flags": [TEXT],
    "policy": TEXT,
    "milliseconds": TEXT,
}
_EXPLAINED: Final = {
    **dict.fromkeys(("from", "to", "method", "path", "headline"), TEXT),
    "answer": "denied",
    "policy": "denied",
    "in_force": "no",
    "in_force_because": [TEXT],
    "logged": dict.fromkeys(("start_time", "response_code", "response_code_details", "policy"), TEXT),
    "steps": [{"depth": 0, "text": TEXT, "objects": [{"object": TEXT, "origin": TEXT}]}],
    "missing": [{TEXT: TEXT}],
    "because": [TEXT],
    "besides": [TEXT],
    "headers": [[TEXT, TEXT]],
}
_SIDECAR: Final = {
    **dict.fromkeys(("proxy", "workload", "said"), TEXT),
    "stands": "behind",
    "lacks": [TEXT],
    "rejected": [TEXT],
    "called_at": [TEXT],
    "brought": {"type": TEXT, "at": TEXT, "answer": TEXT},
}
_PUSH: Final = {
    **dict.fromkeys(("at", "type", "answer"), TEXT),
    "bytes": TEXT,
    "seconds": 1,
    "again": TEXT,
    "added": [{"name": TEXT}],
    "changed": [TEXT],
    "error": {"message": TEXT},
    "trigger": {
        "waves": [{"wave": TEXT, "causes": [{"object": TEXT, "change": TEXT, "origin": TEXT}], "more": TEXT}]
    },
}
_PROXY: Final = {
    **dict.fromkeys(("cn", "workload", "node", "identity", "state", "age", "address", "protocol"), TEXT),
    "why": TEXT,
    "rejected": [TEXT],
    "left_out": [TEXT],
    "sync": {TEXT: TEXT},
    **{name: [{"text": TEXT}] for name in ("listeners", "routes", "clusters", "endpoints", "secrets")},
}
_CERTIFICATES: Final = {
    "service_certificates": [
        {
            **dict.fromkeys(("identity", "serial", "not_before", "not_after", "uri"), TEXT),
            "dns_names": [TEXT],
        }
    ],
    "proxy_certificates": [
        {
            **dict.fromkeys(("cn", "serial", "state", "not_after", "last_seen", "revoked_why"), TEXT),
            "signer": TEXT,
        }
    ],
    "participants": [
        {"cn": TEXT, "lacks": [TEXT], "service_certificate": {"serial": TEXT, "not_after": TEXT}}
    ],
    "authority": {"signer": TEXT, "place": TEXT, "not_after": TEXT},
}
_TOKEN: Final = dict.fromkeys(
    ("id", "namespace", "service", "uuid", "state", "used", "uses", "expires_at", "made_by", "token"), TEXT
)
_ISSUED: Final = dict.fromkeys(
    ("name", "serial", "not_after", "chain_pem", "key_pem", "trust_bundle_pem", "trust_domain"), TEXT
)
_CHANGE: Final = {
    **dict.fromkeys(("stage", "signer", "other", "number", "stages", "since", "began"), TEXT),
    "waiting_for": [{"proxy": TEXT, "why": [TEXT], "last_seen": TEXT}],
    "also_waiting_for": [{"part": TEXT, "why": TEXT, "reason": TEXT}],
    "given_up": {TEXT: TEXT},
}
_STATUS: Final = {
    "proxy": TEXT,
    "ready": False,
    "not_ready": [TEXT],
    "envoy": {"pids": [TEXT]},
    "certificate": {"serial": TEXT, "not_before": TEXT, "not_after": TEXT},
    "control_plane": {
        **dict.fromkeys(("address", "since", "reason", "said", "do"), TEXT),
        "reached": False,
    },
}

ANSWERS: Final[dict[str, Any]] = {
    "/api/v1/proxies": {
        "proxies": [
            {
                **dict.fromkeys(("uuid", "namespace", "service", "pod", "node", "state", "age", "cn"), TEXT),
                "sync": {TEXT: TEXT, "cds": "synced"},
                "address": TEXT,
                "why": TEXT,
                "replica": TEXT,
            }
        ],
        "partial": [{"replica": TEXT, "reason": TEXT}],
    },
    "/api/v1/sources": {
        "sources": [
            {
                **dict.fromkeys(("name", "age", "event_age", "error", "error_since"), TEXT),
                "objects": {"good": TEXT},
                "held": [TEXT],
                "watches": [
                    {
                        **dict.fromkeys(("name", "namespace", "heard_age", "events", "error"), TEXT),
                        "errors": {TEXT: TEXT},
                    }
                ],
            }
        ]
    },
    "/api/v1/replicas": {
        "replicas": [
            {
                **dict.fromkeys(
                    ("replica", "state", "version", "since", "proxies", "fair_share", "inputs", "leads"), TEXT
                ),
                "store_age_seconds": TEXT,
                "differing_settings": [TEXT],
            }
        ],
        "partial": [{"replica": TEXT, "reason": TEXT}],
    },
    "/api/v1/hosts": {"hosts": [{"address": TEXT, "names": [TEXT]}]},
    "/api/v1/proxies/u": _PROXY,
    "/api/v1/proxies/u/pushes": {"pushes": [_PUSH]},
    "/proxies/retry": {"offered": [TEXT]},
    **{
        f"/api/v1/stat/{of}": {"rows": [_ROW], "reporting": {"proxies": 1, "connected": 2}}
        for of in ("services", "proxies", "edges", "routes", "backends")
    },
    "/api/v1/tap": [
        {"watching": {"service": TEXT, "proxies": 0}},
        {"watching": {"service": TEXT, "proxies": 1}},
        {"watching": {"service": TEXT, "proxies": 1, "routes": [TEXT], "backends": [TEXT]}},
        {"request": _REQUEST},
        {"lost": 1},
        {"missing": {"replica": TEXT, "reason": TEXT}},
        {TEXT: TEXT},
        {"ended": TEXT},
    ],
    "/api/v1/certificates": _CERTIFICATES,
    "/certs/tokens": {"join_tokens": [_TOKEN]},
    "/certs/create-token": _TOKEN,
    "/certs/issue-proxy": _ISSUED,
    "/certs/rotate-root": _CHANGE,
    "/certs/rebuild-ledger": {"candidates": [dict.fromkeys(("cn", "serial", "from", "workload"), TEXT)]},
    "/api/v1/explain": _EXPLAINED,
    "/api/v1/connectivity": {
        "explained": _EXPLAINED,
        "protocol": "http",
        "turned_down": None,
        "callers": [_SIDECAR],
        "called": [_SIDECAR],
        "endpoints": [{"address": TEXT, "given": True, "withheld": TEXT, "application": TEXT}],
    },
    "/logging": {"levels": {TEXT: TEXT}},
    "/api/v1/published": {
        "snapshots": [{"proxies": [TEXT], "resources": {TEXT: {TEXT: TEXT}}}],
        "admitted": [],
        "withdrawn": [],
    },
    "/status": _STATUS,
}
"""What a server, an agent or an Envoy answers, by path; any other path is an error that says the same."""


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        """Send the answer for the path."""
        path = self.path.partition("?")[0]
        if path == "/raw":
            self._send(200, TEXT.encode())
        elif (result := ANSWERS.get(path)) is None:
            self._send(409, json.dumps({"error": TEXT}).encode())
        elif isinstance(result, list):
            self._send(200, "".join(json.dumps(item) + "\n" for item in result).encode())
        else:
            self._send(200, json.dumps(result).encode())

    def do_POST(self) -> None:
        """Send the answer for the path after the body is read."""
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.do_GET()

    def _send(self, status: int, body: bytes) -> None:
        self.send_response_only(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self) -> str:
        """Return an empty string, because the peer of a Unix socket has no address."""
        return ""

    def log_message(self, *_: object) -> None:
        """Discard the message."""


class _UnixServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


@contextmanager
def answering(state: Path) -> Iterator[str]:
    """Serve on the socket of a state directory and on a loopback port. Yield the port's `HOST:PORT`."""
    with (
        _UnixServer(str(state / "meshwright.sock"), _Handler) as server,
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as port,
    ):
        for item in (server, port):
            threading.Thread(target=item.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield f"127.0.0.1:{port.server_port}"
        finally:
            for item in (server, port):
                item.shutdown()
