"""A sidecar without Envoy: one mTLS connection with one delta ADS stream and Envoy's subscriptions."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from protos.envoy.config.cluster.v3 import cluster_pb2
from protos.envoy.config.core.v3 import base_pb2
from protos.envoy.config.endpoint.v3 import endpoint_pb2
from protos.envoy.config.listener.v3 import listener_pb2
from protos.envoy.service.discovery.v3 import discovery_pb2
from xds.protocol.resources.references import references
from xds.protocol.resources.resource import CLUSTER, ENDPOINT, LISTENER, ROUTE, SECRET, TypeUrl

DELTA = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"


@dataclass
class Sidecar:
    """A sidecar's subscriptions and acknowledged responses, in order.

    `initial` has the versions that it reports from an earlier stream, by type and name.
    """

    name: str
    initial: dict[TypeUrl, dict[str, str]] = field(default_factory=dict)
    responses: list[discovery_pb2.DeltaDiscoveryResponse] = field(default_factory=list)
    endpoints: dict[str, set[str]] = field(default_factory=dict)
    """Addresses by the name of the assignment that holds them."""
    _asked: dict[TypeUrl, set[str]] = field(default_factory=dict)
    _call: Any = None

    async def run(self, address: str, directory: Path) -> None:
        """Connect with the certificate in the directory, and acknowledge every response until cancelled."""
        credentials = grpc.ssl_channel_credentials(
            (directory / "ca.pem").read_bytes(),
            (directory / f"{self.name}.key").read_bytes(),
            (directory / f"{self.name}.pem").read_bytes(),
        )
        options = [("grpc.use_local_subchannel_pool", 1)]
        async with grpc.aio.secure_channel(address, credentials, options) as channel:
            self._call = channel.stream_stream(
                DELTA,
                request_serializer=lambda message: message.SerializeToString(),
                response_deserializer=discovery_pb2.DeltaDiscoveryResponse.FromString,
            )()
            for type_url in (CLUSTER, LISTENER, *(self.initial.keys() - {CLUSTER, LISTENER})):
                await self._begin(type_url)
            while (response := await self._call.read()) is not grpc.aio.EOF:
                await self._say(response.type_url, response_nonce=response.nonce)
                await self._take(response)
                self.responses.append(response)

    async def leave(self) -> None:
        """Half-close the stream, which the server ends once it has read every request."""
        await self._call.done_writing()

    def held(self) -> dict[TypeUrl, dict[str, str]]:
        """Return the version of every received resource."""
        result: dict[TypeUrl, dict[str, str]] = {}
        for response in self.responses:
            versions = result.setdefault(TypeUrl(response.type_url), {})
            versions.update((resource.name, resource.version) for resource in response.resources)
        return result

    def has_all(self) -> bool:
        """Return whether every resource that was requested by name has arrived."""
        held = self.held()
        return all(names <= held.get(type_url, {}).keys() for type_url, names in self._asked.items())

    def kinds(self, since: int = 0) -> list[tuple[str, int]]:
        """Return the type and number of resources of each response from the index `since`."""
        return [
            (response.type_url.rpartition(".")[2], len(response.resources) + len(response.removed_resources))
            for response in self.responses[since:]
        ]

    async def _begin(self, type_url: TypeUrl) -> None:
        versions = self.initial.get(type_url, {})
        fields: dict[str, Any] = {"initial_resource_versions": versions}
        if type_url == CLUSTER:
            fields["node"] = base_pb2.Node(id=self.name)
        elif type_url != LISTENER:
            fields["resource_names_subscribe"] = sorted(versions)
            self._asked[type_url] = set(versions)
        await self._say(type_url, **fields)

    async def _say(self, type_url: str, **fields: Any) -> None:
        await self._call.write(discovery_pb2.DeltaDiscoveryRequest(type_url=type_url, **fields))

    async def _take(self, response: discovery_pb2.DeltaDiscoveryResponse) -> None:
        for resource in response.resources:
            value = resource.resource.value
            if response.type_url == CLUSTER:
                await self._ask(references(cluster_pb2.Cluster.FromString(value)))
            elif response.type_url == LISTENER:
                await self._ask(references(listener_pb2.Listener.FromString(value)))
            elif response.type_url == ENDPOINT:
                self.endpoints[resource.name] = _addresses(value)

    async def _ask(self, result: Iterable[tuple[TypeUrl, str]]) -> None:
        for type_url in (ENDPOINT, SECRET, ROUTE):
            asked = self._asked.setdefault(type_url, set())
            names = {name for wanted, name in result if wanted == type_url} - asked
            asked |= names
            if names:
                await self._say(type_url, resource_names_subscribe=sorted(names))


def _addresses(assignment: bytes) -> set[str]:
    return {
        lb_endpoint.endpoint.address.socket_address.address
        for group in endpoint_pb2.ClusterLoadAssignment.FromString(assignment).endpoints
        for lb_endpoint in group.lb_endpoints
    }
