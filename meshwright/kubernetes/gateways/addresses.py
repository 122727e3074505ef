"""Requested addresses of a Gateway at its Service.

A load balancer gets the first address as `spec.loadBalancerIP`, and decides itself whether to use it. Any
other Service gets the first usable address as `spec.clusterIP`. Kubernetes never changes that, so a Service
with another address is replaced. `spec.externalIPs` is not used, because the author of a Gateway could take
the traffic of other addresses with it (CVE-2020-8554).
"""

import copy
from typing import Final

from meshwright.kube.api import Api
from meshwright.kube.builtin import SERVICES
from meshwright.kube.errors import ApiError, Reason
from meshwright.kubernetes.gateways.infrastructure import Document, shortened
from meshwright.kubernetes.gateways.parameters import GatewayParameters, ServiceType
from meshwright.mesh.gateway.gateways import IP_ADDRESS, Gateway

_PROBE: Final = "address-check"
"""End of the name of a Service that is only tried, and never created."""


def requested_addresses(gateway: Gateway) -> tuple[str, ...]:
    """Return the requested IP addresses of a Gateway, in their order."""
    return tuple(item.value for item in gateway.addresses if item.type == IP_ADDRESS and item.value)


class ServiceAddresses:
    """Applies the Service of a Gateway with one of the requested addresses; `manager` manages its fields."""

    def __init__(self, api: Api, manager: str) -> None:
        self._api, self._manager = api, manager

    async def apply(
        self, service: Document, addresses: tuple[str, ...], parameters: GatewayParameters
    ) -> None:
        """Apply a Service with the first usable address, else with any. Raises KubeError."""
        if parameters.service_type is ServiceType.LOAD_BALANCER:
            await self._apply(_with(service, loadBalancerIP=addresses[0]) if addresses else service)
            return
        for address in addresses:
            if await self._applies(service, address):
                return
        await self._apply(service)

    async def _applies(self, service: Document, address: str) -> bool:
        """Apply a Service with an address; return False if the cluster refuses the address."""
        wanted = _with(service, clusterIP=address)
        if await self._is_accepted(wanted):
            return True
        # Either the address is not usable, or the Service has another one, which cannot be changed.
        metadata = service["metadata"]
        probe = copy.deepcopy(wanted)
        probe["metadata"]["name"] = shortened(f"{metadata['name']}-{_PROBE}")
        if not await self._is_accepted(probe, dry_run=True):
            return False
        await self._api.delete(SERVICES, metadata["namespace"], metadata["name"])
        return await self._is_accepted(wanted)

    async def _is_accepted(self, service: Document, *, dry_run: bool = False) -> bool:
        try:
            await self._apply(service, dry_run=dry_run)
        except ApiError as error:
            if error.reason is Reason.INVALID:
                return False
            raise
        return True

    async def _apply(self, service: Document, *, dry_run: bool = False) -> None:
        metadata = service["metadata"]
        await self._api.apply(
            SERVICES,
            metadata["namespace"],
            metadata["name"],
            service,
            manager=self._manager,
            dry_run=dry_run,
        )


def _with(service: Document, **fields: str) -> Document:
    return {**service, "spec": {**service["spec"], **fields}}
