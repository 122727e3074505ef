"""Two real servers over a real etcd, whose service certificates are from a real OpenBao."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from certs.keys.leaf import is_signed_by_bundle, read_leaf
from protos.envoy.extensions.transport_sockets.tls.v3 import secret_pb2
from tests.feature.issuers.conftest import Pki
from tests.kubernetes.etcd.members import RealMember
from tests.kubernetes.etcd.test_etcd_servers import BUYER, MESH, SHOP, equal_replicas
from tests.kubernetes.records.test_servers import Replica, Stream, until
from tests.meshes import texts
from tests.tools.forked_cli import Typed

ISSUED = "service certificate issued"
REFUSED = "--set", "authority_directory=/nowhere"


@pytest.fixture
def replicas(own_member: RealMember, pki: Pki, typed: Typed, tmp_path: Path) -> Iterator[list[Replica]]:
    """Return two servers that are not started yet, with the same issuer and equal directories."""
    pki.role(allowed_uri_sans=["spiffe://cluster.local/*"])
    settings = {
        "store": "etcd",
        "etcd_endpoints": own_member.url,
        "key_passphrase_file": pki.file("passphrase", "the same on all servers\n"),
        "issuer": "vault",
        "vault_address": pki.bao.api.address,
        "vault_ca": pki.bao.api.ca,
        "vault_mount": pki.mount,
        "vault_role": "mesh",
        "vault_token_file": pki.file("token", pki.token()),
        "endpoint_admission": "off",
        "shutdown_delay_seconds": 0,
        "shutdown_spread_seconds": 0,
    }
    flags = tuple(word for name, value in settings.items() for word in ("--set", f"{name}={value}"))
    with equal_replicas(tmp_path, typed, flags, "ab") as made:
        yield made


def served(stream: Stream) -> tuple[bytes, bytes]:
    """Return the certificate chain and the roots that a sidecar has; empty without."""
    secrets = [secret_pb2.Secret.FromString(content) for content in stream.secrets().values()]
    chains = [item.tls_certificate for item in secrets if item.HasField("tls_certificate")]
    roots = [item.validation_context for item in secrets if item.HasField("validation_context")]
    return (
        b"".join(chain.certificate_chain.inline_bytes for chain in chains),
        b"".join(root.trusted_ca.inline_bytes for root in roots),
    )


def has_name(stream: Stream, name: str) -> bool:
    """Return whether a sidecar has a certificate with this DNS name."""
    chain, _ = served(stream)
    return bool(chain) and name in read_leaf(chain).names.dns_names


def issued(replicas: list[Replica]) -> Counter[str]:
    """Return the number of certificates that the issuer has signed for each identity, for all servers."""
    return Counter(line["identity"] for replica in replicas for line in replica.running.said(ISSUED))


async def test_servers_share_the_certificates_of_one_issuer(replicas: list[Replica], tmp_path: Path) -> None:
    """Each identity has one certificate, and all servers serve the same bytes, also after a renewal."""
    one, two = replicas
    await asyncio.gather(*(asyncio.to_thread(replica.start) for replica in replicas))
    shops = await asyncio.to_thread(one.issued, SHOP, tmp_path / "shop")
    buyers = await asyncio.to_thread(two.issued, BUYER, tmp_path / "buyer")
    async with one.stream(SHOP, shops) as here, two.stream(SHOP, shops) as there:
        async with two.stream(BUYER, buyers) as buyer:
            for stream in (here, there, buyer):
                await stream.until(stream.is_served)
        await until(lambda: here.secrets() == there.secrets() != {})
        chain, roots = served(here)
        assert is_signed_by_bundle(chain, roots)
        assert read_leaf(chain).names.uris == ("spiffe://cluster.local/ns/shop/sa/shop",)
        identities = issued(replicas)
        assert set(identities) == {"shop/shop", "shop/buyer"}
        assert set(identities.values()) == {1}

        # Another name of the service needs another certificate, at both servers at once.
        for replica in replicas:
            more = texts.joined(MESH, texts.service("store", app="shop"))
            (replica.program.mesh / "mesh.yaml").write_text(more)
        for stream in (here, there):
            await stream.until(partial(has_name, stream, "store.shop.svc.cluster.local"))
        await until(lambda: here.secrets() == there.secrets())
        assert issued(replicas) == identities + Counter(("shop/shop",))
    for replica in replicas:
        await asyncio.to_thread(replica.running.stop)


async def test_ca_in_files_is_refused_with_a_store(replicas: list[Replica]) -> None:
    """All servers sign proxy certificates with the CA in the store."""
    one, _ = replicas
    sentence = await asyncio.to_thread(one.program.refused, *one.flags, *REFUSED)
    assert "store etcd does not work with authority_directory: " in sentence
