"""Tests of the requests of a holder of a Lease, with an API server that compares versions of the Lease."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, cast

from meshwright.kube.api import Api
from meshwright.kube.errors import ApiError
from meshwright.kube.lease import Lease, Terms
from meshwright.kube.resource import Raw
from tests.tools.deadline import until

TERMS: Final = Terms(lasts=60, patience=50.0, every=0.001)


def _refusal(status: int, reason: str) -> ApiError:
    return ApiError(status, reason, "no", verb="update", resource="leases", object_text="home/writing")


class OneLease:
    """An API server with one Lease, and the verbs of all requests."""

    def __init__(self) -> None:
        self.lease: Raw | None = None
        self.version = 0
        self.verbs: list[str] = []
        self.lost: Callable[[], bool] = lambda: False

    async def get(self, *_: object) -> Raw:
        """Return the Lease."""
        self.verbs.append("get")
        if self.lease is None:
            raise _refusal(404, "NotFound")
        return self.lease

    async def create(self, _: object, __: str, body: Raw) -> Raw:
        """Create the Lease."""
        self.verbs.append("create")
        return self._stored(body)

    async def replace(self, _: object, __: str, ___: str, body: Raw) -> Raw:
        """Replace the Lease, if the body has its present version."""
        self.verbs.append("replace")
        if body["metadata"]["resourceVersion"] != str(self.version):
            raise _refusal(409, "Conflict")
        stored = self._stored(body)
        if self.lost():
            raise _refusal(500, "InternalError")
        return stored

    def _stored(self, body: Raw) -> Raw:
        self.version += 1
        metadata = {**body["metadata"], "resourceVersion": str(self.version)}
        self.lease = {**body, "metadata": metadata}
        return self.lease


async def _held(api: OneLease, count: int) -> None:
    """Hold a Lease until the API server has had this number of requests; the term must last."""
    lease = Lease(cast("Api", api), "home", "writing", "a", lambda: datetime.now(UTC), terms=TERMS)
    terms = []

    async def lead() -> None:
        terms.append(lease.term)
        await asyncio.Event().wait()

    task = asyncio.create_task(lease.run(lead))
    await until(lambda: len(api.verbs) >= count)
    assert terms == [1]
    assert lease.is_held
    task.cancel()
    await asyncio.wait((task,))


async def test_renewal_is_one_request() -> None:
    """A slow API server takes long for each request, and the holder's patience has to last for a renewal."""
    api = OneLease()
    await _held(api, 20)
    assert api.verbs[:20] == ["get", "create", *["replace"] * 18]


async def test_holder_reads_again_after_a_change_by_hand_or_a_lost_answer() -> None:
    """Neither a label on the Lease nor an answer that did not arrive ends the term."""
    api = OneLease()
    answers = iter([False, True, *[False] * 100])
    api.lost = lambda: next(answers)
    await _held(api, 9)
    assert api.verbs[:9] == ["get", "create", *["replace"] * 2, "get", *["replace"] * 4]

    api = OneLease()
    changes = iter([False, True, *[False] * 100])

    def label() -> bool:
        if next(changes):
            api.version += 1  # another client has changed the Lease after this write
            assert api.lease is not None
            api.lease = {
                **api.lease,
                "metadata": {**api.lease["metadata"], "resourceVersion": str(api.version)},
            }
        return False

    api.lost = label
    await _held(api, 9)
    assert api.verbs[:9] == ["get", "create", *["replace"] * 3, "get", *["replace"] * 3]
