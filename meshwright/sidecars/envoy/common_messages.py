"""Parts of Envoy's API for every kind of resource."""

from typing import Final

from google.protobuf.any_pb2 import Any
from google.protobuf.message import Message
from google.protobuf.wrappers_pb2 import UInt32Value

from catalog.policy.values.interception import SocketAddress
from meshwright.mesh.policies.callers import IpRange
from protos.envoy.config.core.v3 import address_pb2, config_source_pb2
from protos.envoy.type.v3 import percent_pb2
from xds.protocol.resources.resource import Reference, ResourceName, TypeUrl
from xds.protocol.type_urls import PREFIX


def packed(message: Message) -> Any:
    """Pack a message into an Any, with deterministic bytes (RBAC policies are a map)."""
    value = message.SerializeToString(deterministic=True)
    return Any(type_url=PREFIX + message.DESCRIPTOR.full_name, value=value)


def socket_address(where: SocketAddress) -> address_pb2.Address:
    """Return a TCP address as an Envoy message."""
    socket = address_pb2.SocketAddress(address=where.address, port_value=where.port)
    return address_pb2.Address(socket_address=socket)


def cidr(network: IpRange) -> address_pb2.CidrRange:
    """Return a network as an Envoy message."""
    address, _, length = network.network.partition("/")
    return address_pb2.CidrRange(address_prefix=address, prefix_len=UInt32Value(value=int(length)))


def reference(type_url: TypeUrl, name: str) -> Reference:
    """Return a reference to another resource."""
    return (type_url, ResourceName(name))


OVER_ADS: Final = config_source_pb2.ConfigSource(
    ads=config_source_pb2.AggregatedConfigSource(),
    resource_api_version=config_source_pb2.ApiVersion.V3,
)
"""Config source of the aggregated stream, with Envoy's default timeout (15 s)."""


def percent(of_hundred: float) -> percent_pb2.FractionalPercent:
    """Return a percentage as an Envoy message, exact to 0.0001 %."""
    return fraction(of_hundred, 100)


def fraction(numerator: float, denominator: int) -> percent_pb2.FractionalPercent:
    """Return a fraction as an Envoy message, exact to a millionth."""
    million = percent_pb2.FractionalPercent.DenominatorType.MILLION
    return percent_pb2.FractionalPercent(
        numerator=round(numerator * 1_000_000 / denominator), denominator=million
    )
