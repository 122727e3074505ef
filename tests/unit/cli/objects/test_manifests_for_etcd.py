"""Tests of manifests for etcd: how they are read, judged and stored; kinds as people type them."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from meshwright.cli.errors import CommandFailed
from meshwright.cli.objects.inputs import Input, inputs
from meshwright.cli.objects.judgement import Verdict, judged
from meshwright.cli.objects.kinds import kind_typed
from meshwright.cli.objects.settings import etcd_settings
from meshwright.cli.objects.store import Change, ObjectStore, Outcome
from meshwright.etcd.client import Client, Swap
from meshwright.etcd.errors import UnavailableError
from meshwright.etcd.values import KeyValue
from meshwright.mesh.kinds import (
    ENDPOINTS,
    GATEWAY,
    GATEWAY_CLASS,
    GATEWAY_TCP_ROUTE,
    HTTP_ROUTE,
    LISTENER_SET,
    SERVICE,
    TCP_ROUTE,
    TRAFFIC_SPLIT,
    Kind,
)
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.origins import InFile
from meshwright.providers.etcd.names import ObjectNames
from tests.meshes import texts

NAMES = ObjectNames("cluster.local")
SHOP = Namespace("shop")
WEB = ObjectKey(SERVICE, SHOP, "web")
SPLIT = ObjectKey(TRAFFIC_SPLIT, SHOP, "s")
LIST = """apiVersion: v1
kind: ServiceList
items:
- metadata: {name: a, namespace: shop}
  spec: {ports: [{port: 80}]}
"""


def given(folder: Path, text: str) -> list[Input]:
    """Return the manifests of one file."""
    path = folder / "mesh.yaml"
    path.write_text(text)
    return list(inputs(path))


def one(folder: Path, text: str) -> Input:
    """Return the only manifest of a file."""
    (found,) = given(folder, text)
    return found


def test_each_document_is_stored_as_it_is_written(tmp_path: Path) -> None:
    """Comments stay; an item of a list gets the head that it lacks; a broken document has its place."""
    text = texts.service("web").replace("spec:", "# why\nspec:")
    first, second, third = given(tmp_path, texts.joined(text, LIST, "a: [\n"))
    assert first == Input(InFile("mesh.yaml", 1, 1), first.value, text.encode())
    assert second.place == InFile("mesh.yaml", 2, 7)
    assert second.value == {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "a", "namespace": "shop"},
        "spec": {"ports": [{"port": 80}]},
    }
    assert second.content.startswith(b'{\n  "apiVersion": "v1",\n  "kind": "Service",\n')
    assert third.fault == "must be valid YAML: did not find expected node content (MW1101)"


BAD = texts.split("s", "web", ("web", -1))
SENTENCE = (
    "TrafficSplit shop/s is invalid:\n"
    "  - spec.backends[0].weight is -1: must be a whole number from 0 to 4294967295 (MW1013)"
)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (texts.split("s", "web", ("web", 1)), Verdict(SPLIT)),
        (BAD, Verdict(SPLIT, SENTENCE)),
        (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
            Verdict(None, "the mesh does not use objects of this kind, so they are not stored"),
        ),
        ("just text\n", Verdict(None, "the object is invalid:\n  - is text of 9 characters: must be ")),
        ("a: [\n", Verdict(None, "the document is invalid:\n  - must be valid YAML: did not find ")),
    ],
)
def test_manifest_with_an_error_is_refused(tmp_path: Path, text: str, verdict: Verdict) -> None:
    """The sentence is that of the admission webhook."""
    found = judged(one(tmp_path, text), None)
    assert (found.key, found.warnings) == (verdict.key, verdict.warnings)
    assert found.refused.startswith(verdict.refused)
    assert bool(found.refused) == bool(verdict.refused)


def test_error_of_the_stored_manifest_does_not_refuse_a_change(tmp_path: Path) -> None:
    """A label can be added to a broken object, as in a cluster, but no other error."""
    labelled = BAD.replace("namespace: shop", "namespace: shop, labels: {a: b}")
    warning = SENTENCE.partition("\n  - ")[2]
    assert judged(one(tmp_path, labelled), BAD.encode()) == Verdict(SPLIT, warnings=(warning,))
    worse = BAD.replace("-1", "-2")
    assert judged(one(tmp_path, worse), BAD.encode()).refused == SENTENCE.replace("-1", "-2")
    assert judged(one(tmp_path, BAD), b"a: [").refused == SENTENCE


@dataclass
class FakeEtcd:
    """One key; other writers write `others` before our next writes, and `lost` answers are lost."""

    item: KeyValue | None = None
    others: list[bytes] = field(default_factory=list)
    lost: int = 0
    writes: int = 0

    async def get(self, _: bytes) -> KeyValue | None:
        """Return the key."""
        return self.item

    async def swap(self, key: bytes, value: bytes, modified: int) -> Swap:
        """Write the key by a comparison."""
        if self.others:
            self._put(key, self.others.pop())
        if modified != (0 if self.item is None else self.item.modified):
            return Swap(0, is_done=False)
        self._put(key, value)
        if self.lost:
            self.lost -= 1
            raise UnavailableError("etcd does not answer Txn in time")
        return Swap(0, is_done=True)

    async def delete(self, _: bytes, modified: int) -> Swap:
        """Delete the key by a comparison."""
        if self.item is None or self.item.modified != modified:
            return Swap(0, is_done=False)
        self.item = None
        return Swap(0, is_done=True)

    def _put(self, key: bytes, value: bytes) -> None:
        self.writes += 1
        before = self.item
        modified = 2 if before is None else before.modified + 1
        self.item = KeyValue(key, value, before.created if before else modified, modified)


def apply(store: FakeEtcd, manifest: Input, *, dry_run: bool = False) -> Outcome:
    """Apply a manifest."""
    return asyncio.run(ObjectStore(cast("Client", store), NAMES).apply(manifest, dry_run=dry_run))


def test_manifest_is_created_configured_and_unchanged(tmp_path: Path) -> None:
    """A dry run writes nothing, and an equal manifest is not written again."""
    store, manifest = FakeEtcd(), one(tmp_path, texts.service("web"))
    other = one(tmp_path, texts.service("web", texts.port(81)))
    assert apply(store, manifest, dry_run=True).change is Change.CREATED
    assert store.writes == 0
    assert [apply(store, each).change for each in (manifest, manifest, other)] == [
        Change.CREATED,
        Change.UNCHANGED,
        Change.CONFIGURED,
    ]
    assert store.item == KeyValue(NAMES.name_of(WEB), other.content, 2, 3)
    assert store.writes == 2


def test_conflict_is_judged_again(tmp_path: Path) -> None:
    """Another writer mends the object that had the same error before, so the error now refuses ours."""
    store = FakeEtcd(KeyValue(NAMES.name_of(SPLIT), BAD.encode(), 2, 2))
    good = texts.split("s", "web", ("web", 1)).encode()
    store.others = [good]
    labelled = one(tmp_path, BAD.replace("namespace: shop", "namespace: shop, labels: {a: b}"))
    assert apply(store, labelled) == Outcome(Change.REFUSED, Verdict(SPLIT, SENTENCE))
    assert store.item is not None
    assert store.item.value == good


def test_lost_answer_is_read_back(tmp_path: Path) -> None:
    """A write that was done is reported as done, and not repeated."""
    store = FakeEtcd(lost=1)
    assert apply(store, one(tmp_path, texts.service("web"))).change is Change.CREATED
    assert store.writes == 1


def test_object_that_never_stands_still_is_an_error(tmp_path: Path) -> None:
    """The sentence says what to do."""
    store = FakeEtcd(others=[str(number).encode() for number in range(9)])
    with pytest.raises(UnavailableError, match=r"^Service shop/web is changed by other writers all the time"):
        apply(store, one(tmp_path, texts.service("web")))


def test_object_is_deleted_once(tmp_path: Path) -> None:
    """A missing object is reported."""
    store = FakeEtcd()
    apply(store, one(tmp_path, texts.service("web")))
    objects = ObjectStore(cast("Client", store), NAMES)
    changes = [asyncio.run(objects.delete(WEB, dry_run=dry_run)) for dry_run in (True, False, False)]
    assert changes == [Change.DELETED, Change.DELETED, Change.MISSING]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("TrafficSplit", TRAFFIC_SPLIT),
        ("trafficsplits", TRAFFIC_SPLIT),
        ("trafficsplit.split.smi-spec.io", TRAFFIC_SPLIT),
        ("services", SERVICE),
        ("Endpoints", ENDPOINTS),
        ("tcproutes", TCP_ROUTE),
        ("tcproutes.gateway.networking.k8s.io", GATEWAY_TCP_ROUTE),
        ("httproutes", HTTP_ROUTE),
        ("gateways", GATEWAY),
        ("listenersets", LISTENER_SET),
        ("gatewayclasses.gateway.networking.k8s.io", GATEWAY_CLASS),
        ("retries", Kind("Retry", "policy.openservicemesh.io")),
        ("ingressbackends", Kind("IngressBackend", "policy.openservicemesh.io")),
        ("routepolicies", Kind("RoutePolicy", "policy.meshwright.dev")),
    ],
)
def test_kind_is_typed_as_in_kubectl(text: str, kind: Kind) -> None:
    """Case, plural and group do not matter."""
    assert kind_typed(text) == kind


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("trafficspilt", "'trafficspilt' is not a kind of the mesh: did you mean TrafficSplit?"),
        ("service.apps", "'service.apps' is not a kind of the mesh: did you mean Service?"),
        ("xyz", "'xyz' is not a kind of the mesh: `meshwright schema` lists the kinds"),
    ],
)
def test_unknown_kind_is_named_with_a_similar_one(text: str, sentence: str) -> None:
    """The sentence is for the terminal."""
    with pytest.raises(CommandFailed) as caught:
        kind_typed(text)
    assert str(caught.value) == sentence


def test_settings_of_the_server_are_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flag overrides the environment, and this the server's file, whose other settings do not matter."""
    config = tmp_path / "settings.yaml"
    config.write_text(
        "state: /var/lib/meshwright\nstore: etcd\ntrust_domain: a.example\n"
        "etcd_endpoints: https://10.0.0.1\netcd_user_file: user\n"
    )
    monkeypatch.setenv("MESHWRIGHT_ETCD_ENDPOINTS", "https://10.0.0.2")
    found = etcd_settings({"config": config, "trust_domain": "b.example"})
    assert (found.trust_domain, found.etcd_endpoints) == ("b.example", ("https://10.0.0.2:2379",))
    assert str(found.etcd_user_file) == "user"


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ({}, "this command needs etcd_endpoints, the client URLs of etcd's members, for example "),
        ({"etcd_endpoints": "https://a:1"}, "this command needs a client certificate (etcd_certificate and "),
        ({"etcd_endpoints": "http://10.0.0.1"}, "--etcd-endpoints: endpoint 'http://10.0.0.1' of etcd is "),
        ({"etcd_endpoint": "https://a:1"}, "--etcd-endpoint is not a setting; did you mean etcd_endpoints?"),
    ],
)
def test_missing_access_is_one_sentence(flags: dict[str, object], sentence: str) -> None:
    """The sentence names the setting."""
    with pytest.raises(CommandFailed) as caught:
        etcd_settings(flags)
    assert str(caught.value).startswith(sentence)
