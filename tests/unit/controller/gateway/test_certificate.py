"""Tests of a gateway certificate's Secret: creation, renewal and removal, and Secrets of other owners."""

import base64
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from certs.contract import CertificateRequest, Issuer
from certs.errors import IssuerError
from certs.issuers.authority import CertificateAuthority
from certs.keys.leaf import read_leaf
from certs.keys.pair import KeyPairOptions
from meshwright.controller.gateway import certificate as module
from meshwright.controller.gateway.certificate import GATEWAY_SECRETS, GatewaySecret
from meshwright.controller.state_files import StateFile
from meshwright.mesh.config import GatewayCertificate, MeshConfig
from meshwright.mesh.names import Namespace, SecretName, TrustDomain
from meshwright.mesh.problems.problem import Problems
from tests.meshes import values as a
from tests.tools.own_authority import own_authority
from tests.unit.kube.scripted_api import Line, ReceivedRequest, ScriptedServer, api_of

NOW: Final = datetime(2026, 11, 23, 12, tzinfo=UTC)
HOME: Final = "meshwright-system"
PLACE: Final = SecretName(Namespace("ingress"), "tls")
WANTED: Final = GatewayCertificate(PLACE, ("a.example.org", "b.example.org"), timedelta(hours=24))
OURS: Final = {"app.kubernetes.io/managed-by": "meshwright", "meshwright.dev/control-plane": HOME}


class Cluster:
    """Fake API server with Secrets by path; methods in `refused` are forbidden."""

    def __init__(self) -> None:
        self.secrets: dict[str, dict[str, Any]] = {}
        self.refused: set[str] = set()
        self.asked: list[str] = []

    async def __call__(self, asked: ReceivedRequest, line: Line) -> None:
        """Answer a request."""
        place = asked.path.removeprefix("/api/v1/namespaces/").replace("/secrets/", "/")
        self.asked.append(f"{asked.method} {place}")
        if asked.method in self.refused:
            who = "system:serviceaccount:meshwright-system:meshwright"
            await line.refuse(
                403, "Forbidden", f'secrets "tls" is forbidden: User "{who}" cannot {asked.method}'
            )
        elif asked.method == "PATCH":
            assert dict(asked.headers)["content-type"] == "application/apply-patch+yaml"
            self.secrets[place] = json.loads(asked.body)
            assert self.secrets[place]["metadata"]["name"] == place.partition("/")[2]
            await line.answer(self.secrets[place])
        elif place not in self.secrets:
            await line.refuse(404, "NotFound", 'secrets "tls" not found')
        elif asked.method == "DELETE":
            await line.answer(self.secrets.pop(place))
        else:
            await line.answer(self.secrets[place])

    def data(self, name: str, place: str = "ingress/tls") -> bytes:
        """Return the decoded value of a Secret's field."""
        return base64.b64decode(self.secrets[place]["data"][name])


@dataclass
class GatewayScene:
    """A gateway Secret with a fake cluster, a clock, and its reported problems."""

    cluster: Cluster
    state: Path
    issuer: Issuer
    secret: GatewaySecret = field(init=False)
    now: datetime = NOW
    wanted: GatewayCertificate | None = WANTED
    said: Problems = ()
    issued: int = 0

    async def look(self) -> list[str]:
        """Have the Secret checked; return the requests to the cluster."""
        self.cluster.asked.clear()
        await self.secret.look()
        return self.cluster.asked

    @property
    def serial(self) -> str:
        """Return the serial of the certificate in the Secret."""
        return read_leaf(self.cluster.data("tls.crt")).serial

    def count(self) -> None:
        """Count an issued certificate."""
        self.issued += 1

    def say(self, problems: Problems) -> None:
        """Record the reported problems."""
        self.said = problems


@contextlib.asynccontextmanager
async def keeping(cluster: Cluster, state: Path, issuer: Issuer | None = None) -> AsyncIterator[GatewayScene]:
    """Yield a gateway Secret that uses the given cluster and state directory."""
    made = GatewayScene(cluster, state, issuer or authority(state))
    async with ScriptedServer(cluster) as played, api_of(played) as api:
        made.secret = GatewaySecret(
            api,
            HOME,
            made.issuer,
            KeyPairOptions(),
            lambda: a.view(MeshConfig(ingress_gateway=made.wanted)),
            StateFile(state, GATEWAY_SECRETS),
            made.count,
            made.say,
            lambda: made.now,
        )
        yield made


def authority(state: Path) -> CertificateAuthority:
    """Return the CA of a state directory."""
    return own_authority(state, TrustDomain("cluster.local"), NOW)


class ChangingIssuer:
    """Fake issuer whose signing CA can change or fail."""

    def __init__(self, *all_: CertificateAuthority) -> None:
        self.trusted, self.signs, self.fails = list(all_[:1]), all_[0], False

    @property
    def trust_domain(self) -> TrustDomain:
        """Return the trust domain of the mesh."""
        return self.signs.trust_domain

    def issue(self, request: CertificateRequest, now: datetime) -> bytes:
        """Sign the request, or raise IssuerError."""
        if self.fails:
            raise IssuerError("it is down")
        return self.signs.issue(request, now)

    def trust_bundle(self) -> bytes:
        """Return all trusted roots."""
        return b"".join(certificate_authority.trust_bundle() for certificate_authority in self.trusted)

    def signing_bundle(self) -> bytes:
        """Return the root of the signing CA."""
        return self.signs.trust_bundle()


async def test_gateway_certificate_is_created_once_for_clients(tmp_path: Path) -> None:
    """A client certificate is created once and found again after a restart.

    Its key is in the Secret alone, not in the state directory.
    """
    async with keeping(Cluster(), tmp_path) as kept:
        assert await kept.look() == ["GET ingress/tls", "PATCH ingress/tls"]
        secret = kept.cluster.secrets["ingress/tls"]
        assert (secret["type"], secret["metadata"]["labels"]) == ("kubernetes.io/tls", OURS)
        assert sorted(secret["data"]) == ["ca.crt", "tls.crt", "tls.key"]
        assert kept.cluster.data("ca.crt") == kept.issuer.trust_bundle()
        leaf = read_leaf(kept.cluster.data("tls.crt"))
        assert leaf.names.alternatives == ((), ("a.example.org", "b.example.org"), ())
        assert (leaf.client_auth, leaf.server_auth) == (True, False)
        assert leaf.not_after == kept.secret.end == NOW + timedelta(hours=24)
        assert (kept.issued, kept.said) == (1, ())
        key = kept.cluster.data("tls.key")
        assert not [path for path in tmp_path.rglob("*") if path.is_file() and key in path.read_bytes()]
        assert await kept.look() == []
    async with keeping(kept.cluster, tmp_path) as again:
        assert await again.look() == ["GET ingress/tls"]
        assert (again.issued, again.secret.end) == (0, kept.secret.end)


@pytest.mark.parametrize(
    "wanted",
    [
        GatewayCertificate(PLACE, ("a.example.org",), WANTED.validity),
        GatewayCertificate(PLACE, WANTED.dns_names, timedelta(hours=1)),
    ],
)
async def test_gateway_certificate_is_reissued_after_a_change_of_names_or_validity(
    tmp_path: Path, wanted: GatewayCertificate
) -> None:
    """Other DNS names or another validity, and the change back, each give a new certificate."""
    async with keeping(Cluster(), tmp_path) as kept:
        await kept.look()
        for gateway_certificate in (wanted, WANTED):
            before, kept.wanted = kept.serial, gateway_certificate
            assert await kept.look() == ["GET ingress/tls", "PATCH ingress/tls"]
            leaf = read_leaf(kept.cluster.data("tls.crt"))
            assert kept.serial != before
            assert (leaf.names.dns_names, leaf.not_after) == (
                gateway_certificate.dns_names,
                NOW + gateway_certificate.validity,
            )


async def test_gateway_certificate_is_renewed_after_half_of_its_lifetime(tmp_path: Path) -> None:
    """The certificate is kept after 10 of 24 hours and renewed after 14 hours."""
    async with keeping(Cluster(), tmp_path) as kept:
        await kept.look()
        first = kept.serial
        kept.now = NOW + timedelta(hours=10)
        assert (await kept.look(), kept.serial) == ([], first)
        kept.now = NOW + timedelta(hours=14)
        assert await kept.look() == ["GET ingress/tls", "PATCH ingress/tls"]
        assert kept.serial != first
        assert kept.secret.end == kept.now + timedelta(hours=24)


async def test_gateway_certificate_follows_each_stage_of_a_root_change(tmp_path: Path) -> None:
    """First the new root is trusted too, with the same key.

    Then it signs, and in the end it is the only root.
    """
    old, new = authority(tmp_path / "old"), authority(tmp_path / "new")
    turning = ChangingIssuer(old)
    async with keeping(Cluster(), tmp_path, turning) as kept:
        await kept.look()
        first, key = kept.serial, kept.cluster.data("tls.key")
        turning.trusted.append(new)
        await kept.look()
        assert (kept.serial, kept.cluster.data("tls.key"), kept.issued) == (first, key, 1)
        assert kept.cluster.data("ca.crt") == old.trust_bundle() + new.trust_bundle()
        turning.signs = new
        await kept.look()
        assert kept.serial != first
        second = kept.serial
        turning.trusted.remove(old)
        await kept.look()
        assert (kept.serial, kept.cluster.data("ca.crt")) == (second, new.trust_bundle())


async def test_unwanted_gateway_secret_is_deleted(tmp_path: Path) -> None:
    """The Secret is deleted if another one is named or none is wanted, also after a restart."""
    other = GatewayCertificate(SecretName(Namespace("edge"), "tls"), WANTED.dns_names)
    async with keeping(Cluster(), tmp_path) as kept:
        await kept.look()
        kept.wanted = other
        asked = ["GET ingress/tls", "DELETE ingress/tls", "GET edge/tls", "PATCH edge/tls"]
        assert await kept.look() == asked
    async with keeping(kept.cluster, tmp_path) as again:
        again.wanted = None
        assert await again.look() == ["GET edge/tls", "DELETE edge/tls"]
        assert (again.cluster.secrets, again.secret.end, again.said) == ({}, None, ())
    async with keeping(kept.cluster, tmp_path) as last:
        last.wanted = None
        assert await last.look() == []


@pytest.mark.parametrize(
    ("labels", "whose"),
    [
        ({}, "was not created by this control plane"),
        ({**OURS, "app.kubernetes.io/managed-by": "cert-manager"}, "was not created by this control plane"),
        (
            {**OURS, "meshwright.dev/control-plane": "other"},
            "belongs to the control plane in namespace other",
        ),
    ],
)
async def test_secret_of_another_owner_is_kept(tmp_path: Path, labels: dict[str, str], whose: str) -> None:
    """A Secret with another owner's labels is neither written nor deleted.

    The problem names the Secret and the next step.
    """
    cluster = Cluster()
    theirs = {"metadata": {"labels": labels}, "data": {}}
    async with keeping(cluster, tmp_path) as kept:
        await kept.look()
        cluster.secrets["ingress/tls"] = theirs
        kept.wanted = GatewayCertificate(PLACE, ("c",))
        assert await kept.look() == ["GET ingress/tls"]
        (problem,) = kept.said
        assert problem.clause == (
            f"spec.certificate.ingressGateway.secret: Secret ingress/tls {whose}, so it is not overwritten; "
            "name another Secret in the MeshConfig, or delete this one"
        )
        kept.wanted = None
        assert await kept.look() == ["GET ingress/tls"]
    assert cluster.secrets == {"ingress/tls": theirs}


@pytest.mark.parametrize("spoilt", ["gone", "chain", "key", "another's key", "no base64", "roots", "empty"])
async def test_damaged_secret_is_restored_at_the_next_check(
    tmp_path: Path, spoilt: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A deleted, emptied or changed Secret is written again, although the configuration is unchanged."""
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.0)
    async with keeping(Cluster(), tmp_path) as kept:
        await kept.look()
        secret = kept.cluster.secrets["ingress/tls"]
        changes: dict[str, dict[str, str]] = {
            "chain": {"tls.crt": ""},
            "key": {"tls.key": base64.b64encode(b"no key").decode()},
            "another's key": {"tls.key": await _another_key(tmp_path / "other")},
            "no base64": {"tls.crt": "%"},
            "roots": {"ca.crt": ""},
        }
        if spoilt == "gone":
            kept.cluster.secrets.clear()
        elif spoilt == "empty":
            del secret["data"]
        else:
            secret["data"] |= changes[spoilt]
        assert await kept.look() == ["GET ingress/tls", "PATCH ingress/tls"]
        assert kept.cluster.data("ca.crt") == kept.issuer.trust_bundle()
        assert read_leaf(kept.cluster.data("tls.crt")).names.dns_names == WANTED.dns_names
        assert await kept.look() == ["GET ingress/tls"]


async def _another_key(state: Path) -> str:
    async with keeping(Cluster(), state) as other:
        await other.look()
        return str(other.cluster.secrets["ingress/tls"]["data"]["tls.key"])


@pytest.mark.parametrize("method", ["GET", "PATCH"])
async def test_missing_permission_is_reported_and_retried(
    tmp_path: Path, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The problem names the missing RBAC verb and the chart's value.

    After the permission is granted the problem is gone.
    """
    monkeypatch.setattr(module, "rest", lambda _: 0.0)
    async with keeping(Cluster(), tmp_path) as kept:
        kept.cluster.refused = {method}
        await kept.look()
        (problem,) = kept.said
        assert (problem.code, str(problem.key)) == (
            "gateway-certificate-not-written",
            "MeshConfig osm-system/osm-mesh-config",
        )
        verb = method.lower()
        assert f"RBAC grants no `{verb}` on `secrets`" in problem.clause
        assert problem.clause.endswith("; the chart's value ingressGateway.secrets grants it")
        assert "PRIVATE" not in problem.clause
        kept.cluster.refused = set()
        await kept.look()
        assert (kept.said, list(kept.cluster.secrets)) == ((), ["ingress/tls"])


async def test_gateway_certificate_that_cannot_be_renewed_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The issuer's error is reported, the old certificate stays, and the renewal is retried."""
    monkeypatch.setattr(module, "rest", lambda _: 0.0)
    turning = ChangingIssuer(authority(tmp_path / "ca"))
    async with keeping(Cluster(), tmp_path, turning) as kept:
        await kept.look()
        first, turning.fails = kept.serial, True
        kept.now = NOW + timedelta(hours=14)
        for _ in range(2):
            assert await kept.look() == ["GET ingress/tls"]
            assert ([problem.expected for problem in kept.said], kept.serial) == (["it is down"], first)
        turning.fails = False
        await kept.look()
        assert kept.said == ()
        assert kept.serial != first


async def test_failed_deletion_of_a_secret_blocks_no_write(tmp_path: Path) -> None:
    """The new Secret is written although the old one cannot be deleted.

    The deletion is retried after a restart.
    """
    async with keeping(Cluster(), tmp_path) as kept:
        await kept.look()
        kept.cluster.refused = {"DELETE"}
        kept.wanted = GatewayCertificate(SecretName(Namespace("edge"), "tls"), WANTED.dns_names)
        await kept.look()
        assert ([problem.code for problem in kept.said], sorted(kept.cluster.secrets)) == (
            ["gateway-certificate-not-written"],
            ["edge/tls", "ingress/tls"],
        )
    kept.cluster.refused = set()
    async with keeping(kept.cluster, tmp_path) as again:
        again.wanted = kept.wanted
        await again.look()
    assert list(kept.cluster.secrets) == ["edge/tls"]
