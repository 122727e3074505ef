"""Tests of the ValidatingWebhookConfiguration on a real API server: creation, repair, errors."""

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import meshwright.kubernetes.admission.registration
from certs.keys.bundle import TrustBundle
from meshwright.kube.api import Api
from meshwright.kube.builtin import VALIDATING
from meshwright.kube.connection.connection import find_connection
from meshwright.kube.errors import ApiError
from meshwright.kubernetes.admission.configuration import configuration
from meshwright.kubernetes.admission.place import Place
from meshwright.kubernetes.admission.registration import Registration
from meshwright.mesh.names import TrustDomain
from tests.kubernetes.tools import faulty_proxy as spoiling
from tests.kubernetes.tools.accounts import Accounts
from tests.tools import libyaml
from tests.tools.deadline import until
from tests.tools.forked_cli import ROOT
from tests.tools.own_authority import own_authority
from tools.real_parts.cluster import RunningCluster

SECONDS = 60.0
PLACE = Place.parse("https://127.0.0.1:1")
NOWHERE = [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["nowhere"]}]
NAME = "meshwright"


def _now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture
async def registered(api: Api) -> AsyncIterator[Registration]:
    """Return a running registration."""
    async with _of(api, api) as made:
        yield made


async def _until(api: Api, holds: Callable[[Any], bool]) -> Any:
    there: Any = None

    async def is_so() -> bool:
        nonlocal there
        with contextlib.suppress(ApiError):  # it may be gone
            there = await api.get(VALIDATING, None, NAME)
            return holds(there)
        return False

    await until(is_so, SECONDS, lambda: there)
    return there


async def test_webhook_registration_is_created_and_repaired(registered: Registration, api: Api) -> None:
    """A changed or deleted configuration is restored. A foreign webhook in the same configuration is kept."""
    made = await _until(api, lambda there: bool(there.get("webhooks")))
    assert made["webhooks"][0]["failurePolicy"] == "Ignore"
    other = {**made["webhooks"][0], "name": "other.example.com"}
    spoiled = {**made["webhooks"][0], "failurePolicy": "Fail", "timeoutSeconds": 30}
    await api.patch(VALIDATING, None, NAME, {"webhooks": [other, spoiled]})

    def mended(there: Any) -> bool:
        by_name = {webhook["name"]: webhook for webhook in there["webhooks"]}
        ours = by_name["policy.meshwright.dev"]
        return (ours["failurePolicy"], ours["timeoutSeconds"]) == ("Ignore", 5) and len(by_name) == 2

    await _until(api, mended)
    await api.delete(VALIDATING, None, NAME)
    await _until(api, lambda there: there["metadata"]["uid"] != made["metadata"]["uid"])
    state = registered.state
    await until(lambda: (state.is_right, state.error) == (True, ""), SECONDS, lambda: state)


async def test_servers_with_different_roots_are_both_in_the_ca_bundle(api: Api, tmp_path: Path) -> None:
    """Neither server removes the other's root, and both stop writing."""
    domain, paths = TrustDomain("a.example"), [tmp_path / "one", tmp_path / "two"]
    first, second = (own_authority(path, domain, _now()).trust_bundle() for path in paths)
    both = TrustBundle.from_pems([first, second])

    def has_both(there: Any) -> bool:
        encoded = [webhook["clientConfig"].get("caBundle", "") for webhook in there.get("webhooks", ())]
        return bool(encoded) and all(
            TrustBundle.from_pems([base64.b64decode(item)]) == both for item in encoded
        )

    async with _of(api, api, first) as one, _of(api, api, second) as other:
        there = await _until(api, has_both)
        await until(lambda: one.state.is_right and other.state.is_right, SECONDS)
        await until(lambda: {one.trusted, other.trusted} == {both.pem}, SECONDS)
        writes = one.state.writes, other.state.writes
        await api.patch(VALIDATING, None, NAME, {"metadata": {"annotations": {"seen": "yes"}}})
        await _until(api, lambda there: "seen" in there["metadata"].get("annotations", {}))
        await api.patch(VALIDATING, None, NAME, {"webhooks": []})
        there = await _until(api, has_both)
        assert there["metadata"]["annotations"]["seen"] == "yes"
        assert sum(writes) <= 4, "one each, and as many where both have written at once"


@contextlib.asynccontextmanager
async def _by(kubeconfig: Path, api: Api) -> AsyncIterator[Registration]:
    """Register as an account; the created configuration is deleted at the end."""
    async with Api(find_connection(kubeconfig, "")) as theirs, _of(theirs, api) as registration:
        yield registration


@contextlib.asynccontextmanager
async def _of(theirs: Api, api: Api, ca: bytes = b"") -> AsyncIterator[Registration]:
    """Register through an API client; the created configuration is deleted at the end."""
    registration = Registration(theirs, lambda: configuration(PLACE, ca, NOWHERE), _now)
    task = asyncio.create_task(registration.run())
    try:
        yield registration
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        with contextlib.suppress(ApiError):  # it may never have been made
            await api.delete(VALIDATING, None, NAME)


def _granted() -> dict[str, list[str]]:
    """Return the only rule of our ClusterRole for the webhook."""
    documents = libyaml.load_all((ROOT / "docs" / "kubernetes" / "webhook.yaml").read_text("utf-8"))
    ((rule,),) = (document["rules"] for document in documents if document["kind"] == "ClusterRole")
    return dict(rule)


@pytest.mark.parametrize("left_out", ["", "create", "patch", "watch"])
async def test_webhook_role_has_no_verb_too_many(accounts: Accounts, api: Api, left_out: str) -> None:
    """With all verbs the configuration is created and repaired.

    Without any one of them, the missing grant is reported.
    """
    rule = _granted()
    assert not left_out or left_out in rule["verbs"]
    account = accounts.make(
        "webhook", [{**rule, "verbs": [verb for verb in rule["verbs"] if verb != left_out]}]
    )
    async with _by(account.kubeconfig, api) as registration:
        if left_out:
            await until(lambda: registration.state.error or registration.watch_error, SECONDS)
            assert "RBAC grants no " in (registration.state.error or registration.watch_error)
            return
        await _until(api, lambda there: bool(there.get("webhooks")))
        await api.patch(VALIDATING, None, NAME, {"webhooks": []})
        await _until(api, lambda there: bool(there.get("webhooks")))


async def test_webhook_role_suffices_without_streaming_lists(
    accounts: Accounts,
    api: Api,
    shared_cluster: RunningCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Older API servers, and those with the feature off, need `list` as well."""
    monkeypatch.setattr(meshwright.kubernetes.admission.registration, "LOOK_SECONDS", 3600.0)
    account = accounts.make("webhook", [_granted()])
    async with spoiling.spoiling(shared_cluster) as between:
        between.spoil = spoiling.without_streaming_lists
        other = spoiling.by_way_of(account.kubeconfig, between.server, tmp_path / "by-way-of")
        async with _by(other, api) as registration:
            await _until(api, lambda there: bool(there.get("webhooks")))
            await api.patch(VALIDATING, None, NAME, {"webhooks": []})
            await _until(api, lambda there: bool(there.get("webhooks") or registration.watch_error))
            assert registration.watch_error == ""


async def test_missing_permission_is_reported_by_verb_and_resource(accounts: Accounts, api: Api) -> None:
    """An account without grants gets an error that names them."""
    account = accounts.make("nobody", [])
    async with _by(account.kubeconfig, api) as registration:
        await until(lambda: registration.state.error, SECONDS)
        assert "validatingwebhookconfigurations" in registration.state.error
        assert "RBAC grants no `patch`" in registration.state.error
