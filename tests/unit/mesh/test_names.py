"""Tests of DNS labels and subdomains, and of names with a namespace."""

import pytest

from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Namespace, ServiceAccountName, ServiceName, is_dns_label, is_dns_subdomain
from meshwright.mesh.service import ServiceKey
from meshwright.mesh.workload import WorkloadKey

SUBDOMAIN = ".".join(["a" * 63, "b" * 63, "c" * 63, "d" * 61])


@pytest.mark.parametrize("text", ["a", "0", "a-b", "a--b", "1a", "z" * 63])
def test_dns_label_is_a_label_and_a_subdomain(text: str) -> None:
    """RFC 1123 allows a digit at the start, and at most 63 characters."""
    assert (is_dns_label(text), is_dns_subdomain(text)) == (True, True)


@pytest.mark.parametrize("text", ["", "-a", "a-", "A", "a_b", "é", "a\n", "a ", "a..b", ".a", "a.", "a.-b"])
def test_invalid_label_is_no_label_and_no_subdomain(text: str) -> None:
    """Capitals, underscores, outer hyphens and a final line break, which `$` would accept, are invalid."""
    assert (is_dns_label(text), is_dns_subdomain(text)) == (False, False)


@pytest.mark.parametrize(
    ("text", "label", "subdomain"),
    [
        ("a.b", False, True),
        ("a" * 64, False, True),  # Kubernetes limits only the whole name
        (SUBDOMAIN, False, True),
        (SUBDOMAIN + "d", False, False),
    ],
)
def test_subdomain_may_be_longer_than_a_label(text: str, label: bool, subdomain: bool) -> None:
    """A subdomain may have dots and up to 253 characters."""
    assert (is_dns_label(text), is_dns_subdomain(text)) == (label, subdomain)


def test_namespaced_key_is_printed_with_its_namespace_first() -> None:
    """Services, workloads and ServiceAccounts have the same form."""
    shop = Namespace("shop")
    named = (
        ServiceKey(shop, ServiceName("store")),
        WorkloadKey(shop, "store"),
        ServiceIdentity(shop, ServiceAccountName("store")),
    )
    assert [str(item) for item in named] == ["shop/store"] * 3


def test_service_has_three_host_names_with_the_cluster_domain() -> None:
    """The shortest one has the namespace, so that it is valid in every namespace."""
    key = ServiceKey(Namespace("shop"), ServiceName("store"))
    assert key.host_names() == ("store.shop", "store.shop.svc", "store.shop.svc.cluster.local")
    assert key.host_names("mesh.example")[-1] == key.fqdn("mesh.example") == "store.shop.svc.mesh.example"
