"""An HTTPS server that answers like a Kubernetes API server, with faults on request."""

import asyncio
import contextlib
import json
import ssl
import threading
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, Final

import yaml
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.tools import libyaml

Raw = dict[str, Any]

TOKEN: Final = "a-token-of-the-test"
USER: Final = "the-tester"
KINDS: Final[Mapping[str, tuple[str, str, str, bool]]] = {
    "Namespace": ("", "v1", "namespaces", False),
    "Service": ("", "v1", "services", True),
    "Pod": ("", "v1", "pods", True),
    "ServiceAccount": ("", "v1", "serviceaccounts", True),
    "EndpointSlice": ("discovery.k8s.io", "v1", "endpointslices", True),
    "TrafficTarget": ("access.smi-spec.io", "v1alpha3", "traffictargets", True),
    "TrafficSplit": ("split.smi-spec.io", "v1alpha4", "trafficsplits", True),
    "HTTPRouteGroup": ("specs.smi-spec.io", "v1alpha4", "httproutegroups", True),
    "Workload": ("meshwright.dev", "v1alpha1", "workloads", True),
}
"""Kinds that it serves: group, version, plural, and whether its objects are in namespaces."""


@dataclass(slots=True)
class _Kind:
    """Objects of one kind by namespace and name, and their events with versions."""

    objects: dict[tuple[str, str], Raw] = field(default_factory=dict)
    events: list[tuple[int, Raw]] = field(default_factory=list)


class ApiServer:
    """The server in its own thread, which any thread can change.

    `forbidden` has plurals that must not be listed or watched. `nonsense`, unless empty, is the answer to
    every request. `slow` is the delay of each answer in seconds.
    """

    def __init__(self, files: Path) -> None:
        self.kubeconfig = files / "kubeconfig"
        self.asked = 0
        self.forbidden: frozenset[str] = frozenset()
        self.nonsense = ""
        self.slow = 0.0
        self._version = 1
        self._kinds = {plural: _Kind() for _, _, plural, _ in KINDS.values()}
        self._tls = _tls(files)
        self._loop = asyncio.new_event_loop()
        self._moved = asyncio.Condition()
        self._runner: web.AppRunner | None = None
        self._mood = 0
        self._port = 0
        self._thread = threading.Thread(target=self._loop.run_forever, name="API server", daemon=True)
        self._thread.start()
        self.come()
        self._write_kubeconfig(files)

    def apply(self, text: str) -> None:
        """Create or replace the objects in YAML."""
        self._do(self._apply([item for item in libyaml.load_all(text) if item]))

    def delete(self, kind: str, namespace: str, name: str) -> None:
        """Remove an object."""
        self._do(self._delete(kind, namespace, name))

    def be(self, *, forbidden: Iterable[str] = (), nonsense: str = "", slow: float = 0.0) -> None:
        """Change the behaviour, and end open watches."""

        async def change() -> None:
            self.forbidden, self.nonsense, self.slow = frozenset(forbidden), nonsense, slow
            self._mood += 1
            await self._move()

        self._do(change())

    def go(self) -> None:
        """Close the port."""

        async def end() -> None:
            self._mood += 1
            await self._move()
            if self._runner is not None:
                await self._runner.cleanup()
                self._runner = None

        self._do(end())

    def come(self) -> None:
        """Listen again at the same port."""
        self._do(self._serve())

    def end(self) -> None:
        """End the server and its thread."""
        self.go()
        self._do(_ended())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        future: Future[None] = asyncio.run_coroutine_threadsafe(work, self._loop)
        future.result(10)

    async def _serve(self) -> None:
        app = web.Application()
        app.router.add_get("/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port, ssl_context=self._tls, reuse_address=True)
        await site.start()
        self._port = self._runner.addresses[0][1]

    async def _apply(self, result: Iterable[Raw]) -> None:
        for item in result:
            plural = KINDS[item["kind"]][2]
            key = (item["metadata"].get("namespace", ""), item["metadata"]["name"])
            known = key in self._kinds[plural].objects
            self._version += 1
            stamped = item | {
                "metadata": item["metadata"] | {"resourceVersion": str(self._version), "uid": "u"}
            }
            self._kinds[plural].objects[key] = stamped
            self._happened(plural, "MODIFIED" if known else "ADDED", stamped)
        await self._move()

    async def _delete(self, kind: str, namespace: str, name: str) -> None:
        plural = KINDS[kind][2]
        gone = self._kinds[plural].objects.pop((namespace, name))
        self._version += 1
        gone["metadata"]["resourceVersion"] = str(self._version)
        self._happened(plural, "DELETED", gone)
        await self._move()

    def _happened(self, plural: str, what: str, result: Raw) -> None:
        self._kinds[plural].events.append((self._version, {"type": what, "object": result}))

    async def _move(self) -> None:
        async with self._moved:
            self._moved.notify_all()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.asked += 1
        if self.slow:
            await asyncio.sleep(self.slow)
        if self.nonsense:
            return web.Response(text=self.nonsense, content_type="text/html")
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return _status(401, "Unauthorized", "Unauthorized")
        parts = request.path.strip("/").split("/")
        if parts == ["version"]:
            return web.json_response({"major": "1", "minor": "35"})
        if parts in (["api"], ["apis"]):
            return web.json_response(_discovery(core=parts == ["api"]))
        plural = parts[-1]
        if plural not in self._kinds:
            return _status(404, "NotFound", "the server could not find the requested resource")
        group, version = next((g, v) for g, v, item, _ in KINDS.values() if item == plural)
        verb = "watch" if "watch" in request.query else "list"
        if plural in self.forbidden:
            text = (
                f'User "{USER}" cannot {verb} resource "{plural}" in API group "{group}" at the cluster scope'
            )
            return _status(403, "Forbidden", f"{plural} is forbidden: {text}")
        if request.query.get("sendInitialEvents"):
            return _status(
                422, "Invalid", "sendInitialEvents is forbidden for watch unless WatchList is enabled"
            )
        if verb == "watch":
            return await self._watch(request, plural)
        kind = next(name for name, item in KINDS.items() if item[2] == plural)
        return web.json_response(
            {
                "kind": f"{kind}List",
                "apiVersion": f"{group}/{version}" if group else version,
                "metadata": {"resourceVersion": str(self._version)},
                "items": list(self._kinds[plural].objects.values()),
            }
        )

    async def _watch(self, request: web.Request, plural: str) -> web.StreamResponse:
        mood, seen = self._mood, int(request.query["resourceVersion"])
        answer = web.StreamResponse(headers={"Content-Type": "application/json"})
        await answer.prepare(request)
        while mood == self._mood:
            news = [item for item in self._kinds[plural].events if item[0] > seen]
            for version, event in news:
                seen = version
                with contextlib.suppress(ConnectionResetError):
                    await answer.write(json.dumps(event).encode() + b"\n")
            if not news:
                async with self._moved:
                    await self._moved.wait()
        return answer

    def _write_kubeconfig(self, files: Path) -> None:
        server = {
            "server": f"https://127.0.0.1:{self._port}",
            "certificate-authority": str(files / "api.pem"),
        }
        self.kubeconfig.write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": "here",
                    "clusters": [{"name": "the-cluster", "cluster": server}],
                    "users": [{"name": USER, "user": {"token": TOKEN}}],
                    "contexts": [{"name": "here", "context": {"cluster": "the-cluster", "user": USER}}],
                }
            )
        )
        self.kubeconfig.chmod(0o600)


@contextmanager
def serving(files: Path) -> Iterator[ApiServer]:
    """Run a server within the block."""
    made = ApiServer(files)
    try:
        yield made
    finally:
        made.end()


async def _ended() -> None:
    """Cancel all other tasks, and wait for their end."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def _status(code: int, reason: str, message: str) -> web.Response:
    result = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "metadata": {}}
    return web.json_response(result | {"code": code, "reason": reason, "message": message}, status=code)


def _discovery(*, core: bool) -> Raw:
    groups: dict[str, dict[str, list[Raw]]] = {}
    for kind, (group, version, plural, namespaced) in KINDS.items():
        if core == (not group):
            groups.setdefault(group, {}).setdefault(version, []).append(
                {
                    "resource": plural,
                    "responseKind": {"group": group, "version": version, "kind": kind},
                    "scope": "Namespaced" if namespaced else "Cluster",
                    "verbs": ["list", "watch"],
                }
            )
    items = [
        {
            "metadata": {"name": group},
            "versions": [
                {"version": version, "resources": result, "freshness": "Current"}
                for version, result in versions.items()
            ],
        }
        for group, versions in groups.items()
    ]
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    }


def _tls(files: Path) -> ssl.SSLContext:
    """Write a self-signed certificate for 127.0.0.1 to `api.pem`, and return the server's context."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "API server")])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (files / "api.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (files / "api.key").write_bytes(private)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(files / "api.pem", files / "api.key")
    return tls
