"""The ValidatingWebhookConfiguration on a real API server: made, mended, and said where it may not be."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from admission.configuration import configuration
from admission.place import Place
from admission.registration import RESOURCE, Registration
from kube.api import Api
from kube.connection import found
from kube.errors import ApiError
from tests.kubernetes.accounts import Accounts

SECONDS = 60.0
PLACE = Place.parse("https://127.0.0.1:1")
NOWHERE = [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["nowhere"]}]
NAME = "meshwright"


def _now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture
async def registered(api: Api) -> AsyncIterator[tuple[Registration, list[bytes]]]:
    """Return a registration that runs, and the roots that it is to tell of."""
    roots = [b"first"]
    made = Registration(api, lambda: configuration(PLACE, roots[0], NOWHERE), _now)
    task = asyncio.create_task(made.run())
    yield made, roots
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await api.delete(RESOURCE, None, NAME)


async def _until(api: Api, holds: Callable[[Any], bool]) -> Any:
    async with asyncio.timeout(SECONDS):
        while True:
            with contextlib.suppress(ApiError):  # it may be gone
                there: Any = await api.get(RESOURCE, None, NAME)
                if holds(there):
                    return there
            await asyncio.sleep(0.02)


async def test_it_is_made_and_mended(registered: tuple[Registration, list[bytes]], api: Api) -> None:
    """Whatever was changed, and if it is gone; a webhook of somebody else's beside it stays."""
    made = await _until(api, lambda there: bool(there["webhooks"]))
    assert made["webhooks"][0]["failurePolicy"] == "Ignore"
    other = {**made["webhooks"][0], "name": "other.example.com"}
    spoiled = {**made["webhooks"][0], "failurePolicy": "Fail", "timeoutSeconds": 30}
    await api.patch(RESOURCE, None, NAME, {"webhooks": [other, spoiled]})

    def mended(there: Any) -> bool:
        by_name = {each["name"]: each for each in there["webhooks"]}
        ours = by_name["policy.meshwright.dev"]
        return (ours["failurePolicy"], ours["timeoutSeconds"]) == ("Ignore", 5) and len(by_name) == 2

    await _until(api, mended)
    await api.delete(RESOURCE, None, NAME)
    await _until(api, lambda there: there["metadata"]["uid"] != made["metadata"]["uid"])
    registration, _ = registered
    assert (registration.state.is_right, registration.state.error) == (True, "")


async def test_what_is_not_allowed_is_said_by_verb_and_resource(accounts: Accounts) -> None:
    """The rest goes on."""
    account = accounts.make("nobody", [])
    async with Api(found(account.kubeconfig, "")) as theirs:
        registration = Registration(theirs, lambda: configuration(PLACE, b"", NOWHERE), _now)
        task = asyncio.create_task(registration.run())
        try:
            async with asyncio.timeout(SECONDS):
                while not registration.state.error:
                    await asyncio.sleep(0.02)
            assert "validatingwebhookconfigurations" in registration.state.error
            assert "RBAC grants no `patch`" in registration.state.error
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
