"""Tests of proxy names in certificates, and of SPIFFE IDs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshwright.mesh.identity import ProxyName, ProxyNameError, ServiceIdentity
from meshwright.mesh.names import Namespace, ServiceAccountName, TrustDomain

labels = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)


@given(labels, labels, labels)
def test_proxy_name_round_trips_as_a_common_name(uuid: str, service: str, namespace: str) -> None:
    """Each of its three labels may have up to 63 characters, and equal labels are shared in memory."""
    name = ProxyName.parse(f"{uuid}.{service}.{namespace}")

    assert (name.uuid, name.service, name.namespace) == (uuid, service, namespace)
    assert ProxyName.parse(str(name)) == name
    assert ProxyName.parse(str(name)).uuid is name.uuid  # interned, because many copies are parsed and kept


@pytest.mark.parametrize(
    "common_name",
    ["", "a", "a.b", "a.b.c.d", "a..c", "A.b.c", "-a.b.c", f"{'a' * 64}.b.c", "a.b.c\n", "*.b.c"],
)
def test_common_name_without_three_labels_is_refused(common_name: str) -> None:
    """A proxy's common name has exactly three DNS-1123 labels."""
    with pytest.raises(ProxyNameError):
        ProxyName.parse(common_name)


def test_service_identity_has_a_spiffe_id() -> None:
    """The ID has the form that other meshes use as well."""
    identity = ServiceIdentity(Namespace("shop"), ServiceAccountName("buyer"))

    assert identity.spiffe_id(TrustDomain("td")) == "spiffe://td/ns/shop/sa/buyer"
