"""Real Envoys: the available versions, and one that runs against our server."""

import json
import os
import shutil
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import aiohttp

from tests.conformance.control_plane import ControlPlane, Keys
from tests.conformance.resources import ADS, TYPE, Json
from tests.golden.envoys import HERE, RunningEnvoy, keep
from tests.tools import envoy
from tests.tools.deadline import until
from xds.stream_status import Variant

REPOSITORY = Path(__file__).parents[2]
EVERYTHING = os.environ.get("MESHWRIGHT_CONFORMANCE") == "all"
"""Whether every Envoy is asked, and each scenario runs at its full length."""


def programs() -> dict[str, str | None]:
    """Return the Envoys to test, by version: the newest, or all that `make conformance` installed."""
    if EVERYTHING:
        wanted = sorted(path.stem for path in (REPOSITORY / "requirements" / "envoys").glob("*.txt"))
        return {
            version: shutil.which(REPOSITORY / ".envoys" / version / "envoy" / "_bin" / "envoy")
            for version in wanted
        }
    return {"newest": envoy.program()}


def bootstrap(ports: tuple[int, ...], keys: Keys, variant: Variant) -> Json:
    """Return a bootstrap for one or more of our servers, over mutual TLS."""
    endpoints = [
        {"endpoint": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": port}}}}
        for port in ports
    ]
    certificate = {
        "certificate_chain": {"filename": str(keys.certificate_file)},
        "private_key": {"filename": str(keys.key_file)},
    }
    tls = {
        "@type": f"{TYPE}.transport_sockets.tls.v3.UpstreamTlsContext",
        "sni": "ads.cluster.local",
        "common_tls_context": {
            "alpn_protocols": ["h2"],
            "tls_certificates": [certificate],
            "validation_context": {"trusted_ca": {"filename": str(keys.ca_file)}},
        },
    }
    http = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
    options = {
        "@type": f"type.googleapis.com/{http}",
        "explicit_http_config": {"http2_protocol_options": {}},
    }
    us = {
        "name": "control-plane",
        "type": "STATIC",
        "load_assignment": {
            "cluster_name": "control-plane",
            "endpoints": [{"lb_endpoints": endpoints}],
        },
        "transport_socket": {"name": "envoy.transport_sockets.tls", "typed_config": tls},
        "typed_extension_protocol_options": {http: options},
    }
    # Envoy's own pauses between attempts grow to half a minute; tests that restart us need not wait so long.
    retry = {"retry_back_off": {"base_interval": "0.1s", "max_interval": "1s"}}
    ads = {
        "api_type": "GRPC" if variant is Variant.SOTW else "DELTA_GRPC",
        "transport_api_version": "V3",
        "set_node_on_first_message_only": True,
        "grpc_services": [{"envoy_grpc": {"cluster_name": "control-plane", "retry_policy": retry}}],
    }
    return {
        "node": {"id": "front", "cluster": "fronts"},
        "admin": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": 0}}},
        "dynamic_resources": {"ads_config": ads, "cds_config": ADS, "lds_config": ADS},
        "static_resources": {"clusters": [us]},
    }


@dataclass
class Envoy:
    """One running Envoy, and its administration address."""

    admin: str
    log: Path

    @classmethod
    async def start(
        cls,
        program: str,
        plane: ControlPlane,
        variant: Variant,
        folder: Path,
        ends: AsyncExitStack,
        *others: ControlPlane,
    ) -> Self:
        """Start an Envoy that ends with the exit stack; return when its admin address is known."""
        ports = tuple(each.port for each in (plane, *others))
        (folder / "bootstrap.json").write_text(json.dumps(bootstrap(ports, plane.keys, variant)))
        running = RunningEnvoy(folder, "", await ends.enter_async_context(HERE.session()))
        keeping = await keep(program, running, HERE, 2, ends)
        await until(lambda: keeping.done() or running.admin)
        assert not keeping.done(), running.log.read_text()[-2000:]
        return cls(running.admin, running.log)

    async def stat(self, name: str) -> int:
        """Return a counter or gauge, or 0 if it does not exist (yet)."""
        answer = json.loads(await self._get(f"/stats?filter=^{name}$&format=json"))
        return sum(int(item["value"]) for item in answer["stats"] if "value" in item)

    async def is_live(self) -> bool:
        """Return whether the Envoy has finished its start."""
        return (await self._get("/ready")).strip() == "LIVE"

    async def _get(self, path: str) -> str:
        async with aiohttp.ClientSession() as session, session.get(f"http://{self.admin}{path}") as answer:
            return await answer.text()
