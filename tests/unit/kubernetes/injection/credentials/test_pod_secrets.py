"""The Secrets of pods that do not join: what is in one, what is read of one, and what it needs when."""

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
    """Return what an API server says of it when its metadata are asked for."""
    said = {**made["metadata"], "creationTimestamp": "2026-11-23T12:00:00Z", "namespace": "default"}
    return {"metadata": {**said, **metadata}}


def held(**changed: Any) -> PodSecretState:
    """Return it as it is read."""
    found = PodSecretState.of(stored())
    assert found is not None
    return replace(found, **changed)


def test_what_a_pod_is_given() -> None:
    """The three files that its agent reads, in a Secret of the name that the pod mounts."""
    assert {name: base64.b64decode(each) for name, each in MADE["data"].items()} == {
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


def test_nothing_of_the_key_is_in_what_is_asked_for() -> None:
    """Metadata say all that is asked of one later."""
    assert "dGhlIGtleQ" not in str(MADE["metadata"])
    assert held() == PodSecretState(
        NAME, "0a", NOW, NOW, NOW + timedelta(days=30), digest(ROOTS), owned=False
    )
    owner = owned_by({"metadata": {"name": "shop-1", "uid": "u"}})["metadata"]["ownerReferences"]
    found = PodSecretState.of(stored(ownerReferences=owner))
    assert owner == [{"apiVersion": "v1", "kind": "Pod", "name": "shop-1", "uid": "u"}]
    assert found == replace(held(), owned=True)


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
def test_what_somebody_has_written_is_none_of_ours(raw: dict[str, Any]) -> None:
    """Whatever its labels say: it is left alone, and does not end the look at others."""
    assert PodSecretState.of(raw) is None


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
def test_what_one_needs(
    changed: dict[str, Any], has_pod: bool, after: timedelta, expected: Step | None
) -> None:
    """Its pod as owner, which takes it away; two thirds of a certificate's life; other roots."""
    assert step(held(**changed), has_pod=has_pod, roots=ROOTS, now=NOW + after) is expected


def test_another_certificate_changes_what_is_in_it_and_nothing_else() -> None:
    """As a merge patch: labels and owners stay."""
    later = NOW + timedelta(days=20)
    anew = replace(CERTIFICATE, serial="0b", not_after=later + timedelta(days=30), chain_pem=b"chain 2")
    patch = content(anew, b"roots 2", later)
    assert set(patch) == {"metadata", "data"}
    assert set(patch["metadata"]) == {"annotations"}
    found = PodSecretState.of(stored(annotations=patch["metadata"]["annotations"]))
    assert found == PodSecretState(NAME, "0b", NOW, later, anew.not_after, digest(b"roots 2"), owned=False)
