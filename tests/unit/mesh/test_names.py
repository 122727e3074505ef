"""Names as DNS has them, and what they are joined to."""

import pytest

from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Namespace, ServiceAccountName, ServiceName, is_dns_label, is_dns_subdomain
from meshwright.mesh.service import ServiceKey
from meshwright.mesh.workload import WorkloadKey

SUBDOMAIN = ".".join(["a" * 63, "b" * 63, "c" * 63, "d" * 61])


@pytest.mark.parametrize("text", ["a", "0", "a-b", "a--b", "1a", "z" * 63])
def test_a_label_is_a_name_of_one_label(text: str) -> None:
    """RFC 1123: digits may begin it; 63 characters are the most."""
    assert (is_dns_label(text), is_dns_subdomain(text)) == (True, True)


@pytest.mark.parametrize("text", ["", "-a", "a-", "A", "a_b", "é", "a\n", "a ", "a..b", ".a", "a.", "a.-b"])
def test_what_no_label_may_have_no_name_may_have(text: str) -> None:
    """No capitals, no underscores, hyphens only within; and no line break that `$` would let through."""
    assert (is_dns_label(text), is_dns_subdomain(text)) == (False, False)


@pytest.mark.parametrize(
    ("text", "label", "subdomain"),
    [
        ("a.b", False, True),
        ("a" * 64, False, True),  # Kubernetes bounds the whole name alone
        (SUBDOMAIN, False, True),
        (SUBDOMAIN + "d", False, False),
    ],
)
def test_a_name_is_longer_than_a_label(text: str, label: bool, subdomain: bool) -> None:
    """Dots, and up to 253 characters."""
    assert (is_dns_label(text), is_dns_subdomain(text)) == (label, subdomain)


def test_what_has_a_namespace_is_told_with_it_first() -> None:
    """As people write it everywhere: services, workloads, ServiceAccounts."""
    shop = Namespace("shop")
    named = (
        ServiceKey(shop, ServiceName("store")),
        WorkloadKey(shop, "store"),
        ServiceIdentity(shop, ServiceAccountName("store")),
    )
    assert [str(each) for each in named] == ["shop/store"] * 3


def test_a_service_is_called_by_three_names_and_the_domain_is_the_clusters() -> None:
    """From any namespace: the shortest has its namespace, which a client of the same one may leave out."""
    key = ServiceKey(Namespace("shop"), ServiceName("store"))
    assert key.host_names() == ("store.shop", "store.shop.svc", "store.shop.svc.cluster.local")
    assert key.host_names("mesh.example")[-1] == key.fqdn("mesh.example") == "store.shop.svc.mesh.example"
