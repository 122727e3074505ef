"""The Secret with a gateway's certificate: made, kept, made anew, taken away, and never somebody else's."""

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
from tests.unit.kube.scripted_api import Asked, Line, Played, api_of

NOW: Final = datetime(2026, 11, 23, 12, tzinfo=UTC)
HOME: Final = "meshwright-system"
PLACE: Final = SecretName(Namespace("ingress"), "tls")
WANTED: Final = GatewayCertificate(PLACE, ("a.example.org", "b.example.org"), timedelta(hours=24))
OURS: Final = {"app.kubernetes.io/managed-by": "meshwright", "meshwright.dev/control-plane": HOME}


class Cluster:
    """An API server with Secrets by their paths; methods that are `refused` are forbidden."""

    def __init__(self) -> None:
        self.secrets: dict[str, dict[str, Any]] = {}
        self.refused: set[str] = set()
        self.asked: list[str] = []

    async def __call__(self, asked: Asked, line: Line) -> None:
        """Answer."""
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
        """Return what a Secret holds."""
        return base64.b64decode(self.secrets[place]["data"][name])


@dataclass
class Kept:
    """Who keeps it, in a cluster, and what it is told and says."""

    cluster: Cluster
    state: Path
    issuer: Issuer
    secret: GatewaySecret = field(init=False)
    now: datetime = NOW
    wanted: GatewayCertificate | None = WANTED
    said: Problems = ()
    issued: int = 0

    async def look(self) -> list[str]:
        """Have it look; return what it asked of the cluster."""
        self.cluster.asked.clear()
        await self.secret.look()
        return self.cluster.asked

    @property
    def serial(self) -> str:
        """Return that of the certificate in the Secret."""
        return read_leaf(self.cluster.data("tls.crt")).serial

    def count(self) -> None:
        """Take note that one was issued."""
        self.issued += 1

    def say(self, problems: Problems) -> None:
        """Take what is wrong."""
        self.said = problems


@contextlib.asynccontextmanager
async def keeping(cluster: Cluster, state: Path, issuer: Issuer | None = None) -> AsyncIterator[Kept]:
    """Have one who keeps it, with what an earlier one has left in the state directory."""
    made = Kept(cluster, state, issuer or authority(state))
    async with Played(cluster) as played, api_of(played) as api:
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
    return CertificateAuthority.open(state, TrustDomain("cluster.local"), NOW)


class Turning:
    """An issuer that is another one after a while, and may be unable to sign."""

    def __init__(self, *all_: CertificateAuthority) -> None:
        self.trusted, self.signs, self.fails = list(all_[:1]), all_[0], False

    @property
    def trust_domain(self) -> TrustDomain:
        """Return the mesh's."""
        return self.signs.trust_domain

    def issue(self, request: CertificateRequest, now: datetime) -> bytes:
        """Sign, or fail."""
        if self.fails:
            raise IssuerError("it is down")
        return self.signs.issue(request, now)

    def trust_bundle(self) -> bytes:
        """Return the roots that are trusted."""
        return b"".join(each.trust_bundle() for each in self.trusted)

    def signing_bundle(self) -> bytes:
        """Return the root that signs."""
        return self.signs.trust_bundle()


async def test_it_is_made_once_and_is_a_client_s(tmp_path: Path) -> None:
    """Its key is in the Secret alone: not in what is said of it, nor in the state directory."""
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
        assert not [each for each in tmp_path.rglob("*") if each.is_file() and key in each.read_bytes()]
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
async def test_what_is_wanted_otherwise_is_made_anew(tmp_path: Path, wanted: GatewayCertificate) -> None:
    """Names, or validity; and back again."""
    async with keeping(Cluster(), tmp_path) as kept:
        await kept.look()
        for each in (wanted, WANTED):
            before, kept.wanted = kept.serial, each
            assert await kept.look() == ["GET ingress/tls", "PATCH ingress/tls"]
            leaf = read_leaf(kept.cluster.data("tls.crt"))
            assert kept.serial != before
            assert (leaf.names.dns_names, leaf.not_after) == (each.dns_names, NOW + each.validity)


async def test_it_is_renewed_after_half_of_its_life(tmp_path: Path) -> None:
    """Also where that is sooner than the next look."""
    async with keeping(Cluster(), tmp_path) as kept:
        await kept.look()
        first = kept.serial
        kept.now = NOW + timedelta(hours=10)
        assert (await kept.look(), kept.serial) == ([], first)
        kept.now = NOW + timedelta(hours=14)
        assert await kept.look() == ["GET ingress/tls", "PATCH ingress/tls"]
        assert kept.serial != first
        assert kept.secret.end == kept.now + timedelta(hours=24)


async def test_a_change_of_the_root_is_followed_stage_by_stage(tmp_path: Path) -> None:
    """The new root is trusted with the old key, then signs, then is the only one."""
    old, new = authority(tmp_path / "old"), authority(tmp_path / "new")
    turning = Turning(old)
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


async def test_it_is_taken_away_where_it_is_wanted_no_longer(tmp_path: Path) -> None:
    """Also by who has been started since, and where another Secret is named."""
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
async def test_what_is_another_s_stays(tmp_path: Path, labels: dict[str, str], whose: str) -> None:
    """It is neither written nor taken away; what is said names it and what is right."""
    cluster = Cluster()
    theirs = {"metadata": {"labels": labels}, "data": {}}
    async with keeping(cluster, tmp_path) as kept:
        await kept.look()
        cluster.secrets["ingress/tls"] = theirs
        kept.wanted = GatewayCertificate(PLACE, ("c",))
        assert await kept.look() == ["GET ingress/tls"]
        (problem,) = kept.said
        assert problem.said == (
            "spec.certificate.ingressGateway.secret: "
            f"Secret ingress/tls {whose}, so it is not overwritten; "
            "name another Secret in the MeshConfig, or delete this one"
        )
        kept.wanted = None
        assert await kept.look() == ["GET ingress/tls"]
    assert cluster.secrets == {"ingress/tls": theirs}


@pytest.mark.parametrize("spoilt", ["gone", "chain", "key", "another's key", "no base64", "roots", "empty"])
async def test_what_somebody_changes_is_mended(
    tmp_path: Path, spoilt: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the next look, though nothing else is wanted."""
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
async def test_a_right_that_is_missing_is_said_and_tried_again(
    tmp_path: Path, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With where it is granted; once it is, nothing is wrong any more."""
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
        assert f"RBAC grants no `{verb}` on `secrets`" in problem.said
        assert problem.said.endswith("; the chart's value ingressGateway.secrets grants it")
        assert "PRIVATE" not in problem.said
        kept.cluster.refused = set()
        await kept.look()
        assert (kept.said, list(kept.cluster.secrets)) == ((), ["ingress/tls"])


async def test_one_that_cannot_be_renewed_serves_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is wrong with the issuer is said, and the Secret stays."""
    monkeypatch.setattr(module, "rest", lambda _: 0.0)
    turning = Turning(authority(tmp_path / "ca"))
    async with keeping(Cluster(), tmp_path, turning) as kept:
        await kept.look()
        first, turning.fails = kept.serial, True
        kept.now = NOW + timedelta(hours=14)
        for _ in range(2):
            assert await kept.look() == ["GET ingress/tls"]
            assert ([each.expected for each in kept.said], kept.serial) == (["it is down"], first)
        turning.fails = False
        await kept.look()
        assert kept.said == ()
        assert kept.serial != first


async def test_what_cannot_be_taken_away_keeps_nothing_from_being_written(tmp_path: Path) -> None:
    """And it is not forgotten: the next one takes it away."""
    async with keeping(Cluster(), tmp_path) as kept:
        await kept.look()
        kept.cluster.refused = {"DELETE"}
        kept.wanted = GatewayCertificate(SecretName(Namespace("edge"), "tls"), WANTED.dns_names)
        await kept.look()
        assert ([each.code for each in kept.said], sorted(kept.cluster.secrets)) == (
            ["gateway-certificate-not-written"],
            ["edge/tls", "ingress/tls"],
        )
    kept.cluster.refused = set()
    async with keeping(kept.cluster, tmp_path) as again:
        again.wanted = kept.wanted
        await again.look()
    assert list(kept.cluster.secrets) == ["edge/tls"]
