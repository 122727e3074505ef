"""Tests of a Lease on a real API server: one leader at a time, and a successor."""

import asyncio
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from meshwright.kube.api import Api
from meshwright.kube.connection.connection import find_connection
from meshwright.kube.errors import ApiUnreachable
from meshwright.kube.lease import LEASES, Lease, Terms
from meshwright.kube.resource import Raw, Resource
from tools.real_parts.cluster import RunningCluster

SECONDS: Final = 60.0
TERMS: Final = Terms(lasts=6, patience=4.0, every=0.2)


class Cut(Api):
    """An API client that can be disconnected."""

    is_cut = False
    refused = 0

    async def get(self, resource: Resource, namespace: str | None, name: str, **more: Any) -> Raw:
        """Send the request unless disconnected."""
        self._try()
        return await super().get(resource, namespace, name, **more)

    async def replace(
        self, resource: Resource, namespace: str | None, name: str, body: Raw, **more: Any
    ) -> Raw:
        """Send the request unless disconnected."""
        self._try()
        return await super().replace(resource, namespace, name, body, **more)

    def _try(self) -> None:
        if self.is_cut:
            self.refused += 1
            raise ApiUnreachable("nobody is there")


class Leading:
    """The names of the current leaders."""

    def __init__(self) -> None:
        self.now: list[str] = []

    async def lead(self, name: str) -> None:
        """Lead until the task is cancelled."""
        self.now.append(name)
        try:
            await asyncio.Event().wait()
        finally:
            self.now.remove(name)

    async def until(self, *names: str) -> set[tuple[str, ...]]:
        """Wait until exactly these lead; return the combinations seen meanwhile."""
        seen = set()
        async with asyncio.timeout(SECONDS):
            while self.now != [*names]:
                seen.add(tuple(self.now))
                await asyncio.sleep(0.01)
        return seen


async def test_disconnected_leader_stops_before_another_begins(
    shared_cluster: RunningCluster, namespace: str
) -> None:
    """There is an interval without a leader.

    A leader that ends releases the Lease, so that the next one need not wait.
    """
    leading = Leading()
    connection = find_connection(shared_cluster.kubeconfig, "")
    async with Cut(connection) as first, Cut(connection) as second, asyncio.TaskGroup() as group:

        def start(name: str, api: Api) -> asyncio.Task[None]:
            lease = Lease(api, namespace, "writing", name, lambda: datetime.now(UTC), terms=TERMS)
            return group.create_task(lease.run(partial(leading.lead, name)), name=name)

        one = start("first", first)
        await leading.until("first")
        two = start("second", second)
        first.is_cut = True
        assert await leading.until("second") == {("first",), ()}
        held = (await second.get(LEASES, namespace, "writing"))["spec"]
        assert (held["holderIdentity"], held["leaseTransitions"]) == ("second", 1)
        first.is_cut = False
        async with asyncio.timeout(SECONDS):
            while (await second.get(LEASES, namespace, "writing"))["spec"]["renewTime"] == held["renewTime"]:
                assert leading.now == ["second"]
        two.cancel()
        await asyncio.wait({two})
        held = (await first.get(LEASES, namespace, "writing"))["spec"]
        assert held.get("holderIdentity") in (None, "", "first"), "it was given back"
        await leading.until("first")
        one.cancel()


async def test_each_term_has_a_greater_number(shared_cluster: RunningCluster, namespace: str) -> None:
    """Also the next term of the same holder after an outage: its late writes must differ from later ones.

    Work that ends by itself releases the Lease, and is called again in a later term.
    """
    terms: list[tuple[int, bool]] = []

    async def lead() -> None:
        terms.append((lease.term, lease.is_held))
        if len(terms) != 2:
            await asyncio.Event().wait()

    async with Cut(find_connection(shared_cluster.kubeconfig, "")) as api:
        lease = Lease(api, namespace, "writing", "one", lambda: datetime.now(UTC), terms=TERMS)
        task = asyncio.create_task(lease.run(lead))
        async with asyncio.timeout(SECONDS):
            while not terms:
                await asyncio.sleep(0.01)
            api.is_cut = True
            while lease.is_held:
                await asyncio.sleep(0.01)
            # The release fails, and then the first attempt to acquire the Lease again.
            refused = api.refused
            while api.refused < refused + 2:
                await asyncio.sleep(0.01)
            api.is_cut = False
            while len(terms) < 3:
                await asyncio.sleep(0.01)
        assert terms == [(1, True), (2, True), (3, True)]
        held = (await api.get(LEASES, namespace, "writing"))["spec"]
        assert (held["holderIdentity"], held["leaseTransitions"]) == ("one", 2)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_foreign_labels_and_annotations_of_a_lease_are_kept(namespace: str, api: Api) -> None:
    """They are kept over renewals and a change of the leader."""
    leading = Leading()
    for name in ("one", "two"):
        lease = Lease(api, namespace, "writing", name, lambda: datetime.now(UTC), terms=TERMS)
        task = asyncio.create_task(lease.run(partial(leading.lead, name)))
        await leading.until(name)
        if name == "one":
            marked = {"labels": {"team": "mesh"}, "annotations": {"example.com/seen": "yes"}}
            await api.patch(LEASES, namespace, "writing", {"metadata": marked})
        before = (await api.get(LEASES, namespace, "writing"))["spec"]["renewTime"]
        async with asyncio.timeout(SECONDS):
            while (there := await api.get(LEASES, namespace, "writing"))["spec"]["renewTime"] == before:
                await asyncio.sleep(0.02)
        assert there["metadata"]["labels"] == {"team": "mesh"}
        assert there["metadata"]["annotations"] == {"example.com/seen": "yes"}
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_lease_in_a_missing_namespace_is_acquired_once_it_exists(namespace: str, api: Api) -> None:
    """The error is reported until the namespace is created."""
    leading, later = Leading(), f"{namespace}-later"
    lease = Lease(api, later, "writing", "one", lambda: datetime.now(UTC), terms=TERMS)
    task = asyncio.create_task(lease.run(partial(leading.lead, "one")))
    async with asyncio.timeout(SECONDS):
        while not lease.error:
            await asyncio.sleep(0.01)
    assert f'namespaces "{later}" not found' in lease.error
    namespaces = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": later}}
    await api.create(namespaces, None, body)
    await leading.until("one")
    assert lease.error == ""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await api.delete(namespaces, None, later)
