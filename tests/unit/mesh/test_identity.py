"""Names on certificates, and the identities they stand for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshwright.mesh.identity import ProxyName, ProxyNameError, ServiceIdentity
from meshwright.mesh.names import Namespace, ServiceAccountName, TrustDomain

labels = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)


@given(labels, labels, labels)
def test_a_proxy_name_survives_its_common_name(uuid: str, service: str, namespace: str) -> None:
    """Three labels in, the same three out, up to 63 characters each."""
    name = ProxyName.parse(f"{uuid}.{service}.{namespace}")

    assert (name.uuid, name.service, name.namespace) == (uuid, service, namespace)
    assert ProxyName.parse(str(name)) == name
    assert ProxyName.parse(str(name)).uuid is name.uuid  # many keep it, and each has parsed it for itself


@pytest.mark.parametrize(
    "common_name",
    ["", "a", "a.b", "a.b.c.d", "a..c", "A.b.c", "-a.b.c", f"{'a' * 64}.b.c", "a.b.c\n", "*.b.c"],
)
def test_a_common_name_of_another_shape_is_refused(common_name: str) -> None:
    """Exactly three DNS-1123 labels, or it is no proxy's."""
    with pytest.raises(ProxyNameError):
        ProxyName.parse(common_name)


def test_an_identity_has_one_spiffe_id() -> None:
    """In the form that policies of other meshes use as well."""
    identity = ServiceIdentity(Namespace("shop"), ServiceAccountName("buyer"))

    assert identity.spiffe_id(TrustDomain("td")) == "spiffe://td/ns/shop/sa/buyer"
