"""Identities used by several proxies at once, for example by a cloned machine or an agent started twice."""

import asyncio
from collections.abc import Callable
from typing import Final

from catalog.store.inventory import holder_of
from catalog.store.objects import workload_object
from catalog.store.view import View
from meshwright.delivery.proxies.proxy import Proxy
from meshwright.delivery.proxies.registry import ProxyRegistry
from meshwright.delivery.quarantine.quarantine import Quarantine
from meshwright.mesh.origins import FromSource
from meshwright.mesh.problems.problem import Problem, Problems, Severity
from meshwright.sidecars.addresses import plain_address

SHARED: Final = "identity-shared"

LOOK_SECONDS: Final = 5.0
"""Seconds between two checks; the cost of a check grows with the identities that have several connections."""


class SharedIdentities:
    """Proxy identities in use by several proxies at once, and the problems for them."""

    def __init__(self, registry: ProxyRegistry, quarantine: Quarantine) -> None:
        self._registry = registry
        self._quarantine = quarantine

    def proxies(self) -> tuple[Proxy, ...]:
        """Return the proxy records of shared identities, sorted by name."""
        return self._registry.shared(self._quarantine.streams.any_of)

    def problems(self, view: View) -> Problems:
        """Return a problem for each shared identity, attached to the workload of the identity."""
        return tuple(_problem(view, proxy) for proxy in self.proxies())

    async def watching(self, changed: Callable[[], None]) -> None:
        """Call `changed` whenever the shared identities or their addresses change, until cancelled."""
        known = self._peers()
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if (now := self._peers()) != known:
                known = now
                changed()

    def _peers(self) -> dict[str, tuple[str, ...]]:
        return {proxy.node: proxy.peers for proxy in self.proxies()}


def _problem(view: View, proxy: Proxy) -> Problem:
    workload = holder_of(view, proxy.name)
    key = None if workload is None else workload_object(view, workload.key)
    sourced = None if key is None else view.sourced.values_unrecorded().get(key)
    peers = " and ".join(map(plain_address, proxy.peers))
    return Problem(
        code=SHARED,
        severity=Severity.WARNING,
        origin=FromSource("proxies") if sourced is None else sourced.origin,
        key=key,
        field="proxy",
        value=str(proxy.name),
        expected=f"is the identity of several connected proxies ({peers}), as of a cloned machine or an "
        "agent started twice; stop all but one, or issue a certificate with a UUID of its own to each",
    )
