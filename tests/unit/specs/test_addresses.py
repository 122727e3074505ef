"""However an address is written it is the same one, and an address is not always of IPv4."""

import json
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshwright.mesh.objects import EndpointSlice
from meshwright.mesh.service import Service
from meshwright.mesh.workload import Workload
from tests.meshes.reading import complaints, value

_IPV4 = st.integers(0x01000000, 0x7EFFFFFF).map(IPv4Address)
_IPV6 = st.integers(0x2000 << 112, (0xFE00 << 112) - 1).map(IPv6Address)


def _spellings(address: IPv4Address | IPv6Address) -> st.SearchStrategy[str]:
    """Return the ways in which an address may be written (RFC 4291 2.2): in capitals, with all zeros."""
    if isinstance(address, IPv4Address):
        mapped = [f"::ffff:{address}", f"::FFFF:{address}", f"0:0:0:0:0:ffff:{address}"]
        return st.sampled_from([str(address), *mapped, IPv6Address(f"::ffff:{address}").exploded])
    end = IPv4Address(int(address) & 0xFFFFFFFF)
    dotted = f"{address.exploded.rsplit(':', 2)[0]}:{end}"
    shown = [address.compressed, address.exploded, dotted]
    return st.sampled_from([*shown, *(each.upper() for each in shown)])


_WRITTEN = st.one_of(_IPV4, _IPV6).flatmap(lambda each: st.tuples(st.just(str(each)), _spellings(each)))


def _object(api: str, kind: str, body: Mapping[str, object], **metadata: object) -> str:
    """Write an object of the namespace shop; JSON is YAML."""
    meta = {"name": "cart", "namespace": "shop", **metadata}
    return json.dumps({"apiVersion": api, "kind": kind, "metadata": meta, **body})


def _service(**spec: object) -> str:
    return _object("v1", "Service", {"spec": {"ports": [{"port": 80}], **spec}})


@given(_WRITTEN, _WRITTEN)
def test_each_address_of_a_service_is_one_however_it_is_written(
    first: tuple[str, str], second: tuple[str, str]
) -> None:
    """`clusterIP` and `clusterIPs` may write the same one differently; a proxy is told of it once."""
    (one, written), (other, also_written) = first, second
    found = value(_service(clusterIP=written, clusterIPs=[one, also_written, other]))
    assert isinstance(found, Service)
    assert (found.cluster_ip, *found.other_addresses) == tuple(dict.fromkeys((one, other)))


@given(_WRITTEN, _WRITTEN)
def test_each_address_of_a_pod_a_workload_and_a_slice_is_one(
    first: tuple[str, str], second: tuple[str, str]
) -> None:
    """So they are compared with one another."""
    (one, written), (other, also_written) = first, second
    both = tuple(dict.fromkeys((one, other)))
    status = {"podIP": written, "podIPs": [{"ip": one}, {"ip": also_written}]}
    pod = value(_object("v1", "Pod", {"spec": {"containers": []}, "status": status}))
    assert isinstance(pod, Workload)
    assert pod.addresses == both
    spec = {"address": written, "otherAddresses": [also_written, other, one]}
    workload = value(_object("meshwright.dev/v1alpha1", "Workload", {"spec": spec}))
    assert isinstance(workload, Workload)
    assert workload.addresses == both
    family = {"addressType": "IPv6", "endpoints": [{"addresses": [written]}, {"addresses": [also_written]}]}
    labels = {"kubernetes.io/service-name": "cart"}
    found = value(_object("discovery.k8s.io/v1", "EndpointSlice", family, labels=labels))
    assert isinstance(found, EndpointSlice)
    assert found.addresses == tuple(sorted(both))


@pytest.mark.parametrize(
    "wrong", ["fe80::1%eth0", "[fd00::1]", "fd00::1/64", "::", "ff02::1", "1.2.3", "fd00::g"]
)
def test_what_is_no_address_of_one_machine_is_refused(wrong: str) -> None:
    """A zone says which card of the machine that wrote it, a range is many, `::` everybody."""
    texts = [
        (_service(clusterIP=wrong), "spec.clusterIP"),
        (_service(clusterIP="fd00::1", clusterIPs=["fd00::1", wrong]), "spec.clusterIPs"),
        *(
            (_object("meshwright.dev/v1alpha1", "Workload", {"spec": {"address": "fd00::1", **spec}}), field)
            for spec, field in (
                ({"address": wrong}, "spec.address"),
                ({"otherAddresses": [wrong]}, "spec.otherAddresses"),
                ({"applicationAddress": wrong}, "spec.applicationAddress"),
            )
        ),
    ]
    for text, field in texts:
        assert [(severity, path) for severity, _, path, _ in complaints(text)] == [("error", field)], text


def test_a_service_may_have_its_addresses_by_their_list_alone() -> None:
    """As a cluster has it, the first is `clusterIP`, which a manifest written by hand may leave out."""
    found = value(_service(clusterIPs=["fd00:96::1", "10.96.0.1"], ipFamilies=["IPv6", "IPv4"]))
    assert isinstance(found, Service)
    assert (found.cluster_ip, found.other_addresses) == ("fd00:96::1", ("10.96.0.1",))
    headless = value(_service(clusterIPs=["None"], ipFamilies=["IPv6"]))
    assert isinstance(headless, Service)
    assert (headless.cluster_ip, headless.headless, headless.other_addresses) == (None, True, ())


def test_a_sidecar_that_binds_its_address_has_no_others() -> None:
    """In explicit interception nobody would listen there."""
    spec = {"address": "10.0.0.1", "otherAddresses": ["fd00::1"], "applicationAddress": "127.0.0.1"}
    text = _object("meshwright.dev/v1alpha1", "Workload", {"spec": spec})
    assert [(severity, path) for severity, _, path, _ in complaints(text)] == [
        ("error", "spec.otherAddresses")
    ]
