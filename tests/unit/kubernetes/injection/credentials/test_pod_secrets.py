"""Tests of the Secrets of pods that do not join: content, state as read, and the next step."""

import base64
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from certs.keys.material import PrivateKey, ProxyCertificate
from meshwright.kubernetes.injection.credentials.pod_secrets import (
    PodSecretState,
    Step,
    content,
    digest,
    document,
    owned_by,
    selector,
    step,
)
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import Namespace, ProxyUuid, ServiceName

NOW: Final = datetime(2026, 11, 23, 12, tzinfo=UTC)
NAME: Final = ProxyName(ProxyUuid("5b1c"), ServiceName("shop"), Namespace("default"))
ROOTS: Final = b"roots"
CERTIFICATE: Final = ProxyCertificate(NAME, "0a", NOW + timedelta(days=30), b"chain", PrivateKey(b"the key"))
MADE: Final = document(CERTIFICATE, ROOTS, "meshwright-system", NOW)


def stored(made: Any = MADE, **metadata: object) -> dict[str, Any]:
    """Return the metadata of a Secret as an API server answers."""
    answer = {**made["metadata"], "creationTimestamp": "2026-11-23T12:00:00Z", "namespace": "default"}
    return {"metadata": {**answer, **metadata}}


def held(**changed: Any) -> PodSecretState:
    """Return the state that is read from the Secret."""
    pod_secret_state = PodSecretState.parse(stored())
    assert pod_secret_state is not None
    return replace(pod_secret_state, **changed)


def test_secret_has_the_three_files_of_the_agent() -> None:
    """The Secret has the name that the pod mounts, and labels by which the control plane finds it."""
    assert {name: base64.b64decode(item) for name, item in MADE["data"].items()} == {
        "ca.pem": b"roots",
        "proxy.key": b"the key",
        "proxy.pem": b"chain",
    }
    assert (MADE["kind"], MADE["type"], MADE["metadata"]["name"]) == (
        "Secret",
        "Opaque",
        "meshwright-proxy-5b1c",
    )
    assert MADE["metadata"]["labels"] == {
        "app.kubernetes.io/managed-by": "meshwright",
        "meshwright.dev/control-plane": "meshwright-system",
        "meshwright.dev/proxy-uuid": "5b1c",
    }
    assert selector("meshwright-system") == (
        "app.kubernetes.io/managed-by=meshwright,meshwright.dev/control-plane=meshwright-system,"
        "meshwright.dev/proxy-uuid"
    )


def test_state_is_read_from_metadata_without_the_key() -> None:
    """The metadata have all that later steps need, so the key is never requested."""
    assert "dGhlIGtleQ" not in str(MADE["metadata"])
    assert held() == PodSecretState(
        NAME, "0a", NOW, NOW, NOW + timedelta(days=30), digest(ROOTS), owned=False
    )
    owner = owned_by({"metadata": {"name": "shop-1", "uid": "u"}})["metadata"]["ownerReferences"]
    pod_secret_state = PodSecretState.parse(stored(ownerReferences=owner))
    assert owner == [{"apiVersion": "v1", "kind": "Pod", "name": "shop-1", "uid": "u"}]
    assert pod_secret_state == replace(held(), owned=True)


@pytest.mark.parametrize(
    "raw",
    [
        {"metadata": {"name": "meshwright-proxy-5b1c"}},
        {"metadata": {"name": "meshwright-proxy-5b1c", "annotations": None}},
        stored(name="another"),
        stored(annotations={**MADE["metadata"]["annotations"], "meshwright.dev/proxy": "5b1c"}),
        stored(annotations={**MADE["metadata"]["annotations"], "meshwright.dev/certificate-issued": "now"}),
        stored(
            annotations={
                **MADE["metadata"]["annotations"],
                "meshwright.dev/certificate-expires": "2026-11-23T12:00:00",
            }
        ),
    ],
)
def test_foreign_or_malformed_secret_is_ignored(raw: dict[str, Any]) -> None:
    """The Secret is left alone despite its labels, and does not stop the work on others."""
    assert PodSecretState.parse(raw) is None


@pytest.mark.parametrize(
    ("changed", "has_pod", "after", "expected"),
    [
        ({}, False, timedelta(minutes=4, seconds=59), None),
        ({}, False, timedelta(minutes=5), Step.REMOVE),
        ({}, True, timedelta(0), Step.OWN),
        ({}, True, timedelta(days=1), Step.OWN),
        ({"owned": True}, False, timedelta(days=19), None),
        ({"owned": True}, False, timedelta(days=20), Step.RENEW),
        ({"owned": True}, False, timedelta(days=40), Step.RENEW),
        ({"owned": True, "roots": digest(b"others")}, False, timedelta(0), Step.RENEW),
    ],
)
def test_next_step_follows_pod_age_and_roots(
    changed: dict[str, Any], has_pod: bool, after: timedelta, expected: Step | None
) -> None:
    """A Secret without a pod is removed after five minutes; otherwise it gets the pod as owner.

    The cluster deletes an owned Secret with its pod. The Secret is renewed after two thirds of the
    certificate's life, or with other roots.
    """
    assert step(held(**changed), has_pod=has_pod, roots=ROOTS, now=NOW + after) is expected


def test_renewal_changes_only_data_and_annotations() -> None:
    """The merge patch leaves labels and owners unchanged."""
    later = NOW + timedelta(days=20)
    anew = replace(CERTIFICATE, serial="0b", not_after=later + timedelta(days=30), chain_pem=b"chain 2")
    patch = content(anew, b"roots 2", later)
    assert set(patch) == {"metadata", "data"}
    assert set(patch["metadata"]) == {"annotations"}
    pod_secret_state = PodSecretState.parse(stored(annotations=patch["metadata"]["annotations"]))
    assert pod_secret_state == PodSecretState(
        NAME, "0b", NOW, later, anew.not_after, digest(b"roots 2"), owned=False
    )
