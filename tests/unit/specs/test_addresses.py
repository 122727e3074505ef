"""Tests of IP addresses in manifests: all notations of an address, in IPv4 and IPv6, are equal."""

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
    """Return notations of an address (RFC 4291 2.2), such as capitals, all zeros and mapped IPv4."""
    if isinstance(address, IPv4Address):
        mapped = [f"::ffff:{address}", f"::FFFF:{address}", f"0:0:0:0:0:ffff:{address}"]
        return st.sampled_from([str(address), *mapped, IPv6Address(f"::ffff:{address}").exploded])
    end = IPv4Address(int(address) & 0xFFFFFFFF)
    dotted = f"{address.exploded.rsplit(':', 2)[0]}:{end}"
    shown = [address.compressed, address.exploded, dotted]
    return st.sampled_from([*shown, *(item.upper() for item in shown)])


_WRITTEN = st.one_of(_IPV4, _IPV6).flatmap(lambda item: st.tuples(st.just(str(item)), _spellings(item)))


def _object(api: str, kind: str, body: Mapping[str, object], **metadata: object) -> str:
    """Return an object of namespace shop as JSON, which is valid YAML."""
    meta = {"name": "cart", "namespace": "shop", **metadata}
    return json.dumps({"apiVersion": api, "kind": kind, "metadata": meta, **body})


def _service(**spec: object) -> str:
    return _object("v1", "Service", {"spec": {"ports": [{"port": 80}], **spec}})


@given(_WRITTEN, _WRITTEN)
def test_service_addresses_in_any_notation_are_deduplicated(
    first: tuple[str, str], second: tuple[str, str]
) -> None:
    """`clusterIP` and `clusterIPs` may have the same address in different notations."""
    (one, written), (other, also_written) = first, second
    result = value(_service(clusterIP=written, clusterIPs=[one, also_written, other]))
    assert isinstance(result, Service)
    assert (result.cluster_ip, *result.other_addresses) == tuple(dict.fromkeys((one, other)))


@given(_WRITTEN, _WRITTEN)
def test_pod_workload_and_slice_addresses_in_any_notation_are_deduplicated(
    first: tuple[str, str], second: tuple[str, str]
) -> None:
    """Their canonical forms can be compared with each other."""
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
    result = value(_object("discovery.k8s.io/v1", "EndpointSlice", family, labels=labels))
    assert isinstance(result, EndpointSlice)
    assert result.addresses == tuple(sorted(both))


@pytest.mark.parametrize(
    "wrong", ["fe80::1%eth0", "[fd00::1]", "fd00::1/64", "::", "ff02::1", "1.2.3", "fd00::g"]
)
def test_value_that_is_no_address_of_one_machine_is_refused(wrong: str) -> None:
    """A zone is local to one machine, a range has many addresses, and `::` means every address."""
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


def test_service_addresses_may_be_in_the_list_alone() -> None:
    """A manifest written by hand may omit `clusterIP`, which is the first address of the list."""
    result = value(_service(clusterIPs=["fd00:96::1", "10.96.0.1"], ipFamilies=["IPv6", "IPv4"]))
    assert isinstance(result, Service)
    assert (result.cluster_ip, result.other_addresses) == ("fd00:96::1", ("10.96.0.1",))
    headless = value(_service(clusterIPs=["None"], ipFamilies=["IPv6"]))
    assert isinstance(headless, Service)
    assert (headless.cluster_ip, headless.headless, headless.other_addresses) == (None, True, ())


def test_explicit_interception_with_other_addresses_is_refused() -> None:
    """The sidecar would not listen on the other addresses."""
    spec = {"address": "10.0.0.1", "otherAddresses": ["fd00::1"], "applicationAddress": "127.0.0.1"}
    text = _object("meshwright.dev/v1alpha1", "Workload", {"spec": spec})
    assert [(severity, path) for severity, _, path, _ in complaints(text)] == [
        ("error", "spec.otherAddresses")
    ]
