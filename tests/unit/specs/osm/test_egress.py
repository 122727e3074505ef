"""Tests of OSM's Egress: values that are read, and problems of invalid ones."""

import pytest

from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Namespace, Port, ServiceAccountName
from meshwright.mesh.policies.egress import Egress, EgressPort, EgressProtocol, covers
from meshwright.mesh.policies.smi import PolicyKey
from tests.meshes.reading import complaints, reading, value

GROUP = "{apiGroup: specs.smi-spec.io/v1alpha4, kind: HTTPRouteGroup, name: books}"
LIMITS = "{apiGroup: policy.openservicemesh.io/v1alpha1, kind: UpstreamTrafficSetting, name: limits}"


def _egress(**fields: str) -> str:
    answer = {
        "sources": "[{kind: ServiceAccount, name: curl, namespace: curl}]",
        "hosts": "[httpbin.org]",
        "ports": "[{number: 80, protocol: http}]",
        **fields,
    }
    spec = "".join(f"  {name}: {text}\n" for name, text in answer.items() if text)
    return (
        "apiVersion: policy.openservicemesh.io/v1alpha1\nkind: Egress\n"
        f"metadata: {{name: out, namespace: shop}}\nspec:\n{spec}"
    )


def test_egress_with_all_fields_is_read() -> None:
    """Hosts are lower-case, networks lose their host bits, and all lists are sorted without duplicates."""
    result = value(
        _egress(
            sources="[{kind: ServiceAccount, name: z, namespace: curl}, {kind: ServiceAccount, name: a}]",
            hosts='[HTTPBin.org, "*.example.com", 192.0.2.7, httpbin.org, "2001:DB8:0::7"]',
            ipAddresses='["2001:db8::1/32", 10.1.2.3/8, 192.0.2.7/32, 10.0.0.0/8]',
            ports="[{number: 443, protocol: HTTPS}, {number: 3306, protocol: tcp-server-first}, "
            "{number: 80, protocol: http}, {number: 5432, protocol: tcp}]",
            matches=f"[{GROUP}, {{kind: HTTPRouteGroup, name: albums}}]",
        )
    )
    ports = ((80, "http"), (443, "https"), (3306, "tcp-server-first"), (5432, "tcp"))
    assert result == Egress(
        PolicyKey(Namespace("shop"), "out"),
        (
            ServiceIdentity(Namespace("curl"), ServiceAccountName("z")),
            ServiceIdentity(Namespace("shop"), ServiceAccountName("a")),
        ),
        tuple(EgressPort(Port(number), EgressProtocol(spoken)) for number, spoken in ports),
        hosts=("*.example.com", "192.0.2.7", "2001:db8::7", "httpbin.org"),
        networks=("10.0.0.0/8", "192.0.2.7/32", "2001:db8::/32"),
        route_groups=("albums", "books"),
    )


@pytest.mark.parametrize(
    ("fields", "code", "field"),
    [
        ({"hosts": "[httpbin.org:80]"}, "MW1013", "spec.hosts[0]"),
        ({"hosts": '[http://httpbin.org, "*"]'}, "MW1013", "spec.hosts[0]"),
        ({"hosts": '["*"]'}, "MW1013", "spec.hosts[0]"),
        ({"hosts": '["www.*.com"]'}, "MW1013", "spec.hosts[0]"),
        ({"hosts": "[httpbin.org.]"}, "MW1013", "spec.hosts[0]"),
        ({"hosts": "[7]"}, "MW1013", "spec.hosts[0]"),
        ({"hosts": '["[2001:db8::7]"]'}, "MW1013", "spec.hosts[0]"),
        ({"hosts": '["fe80::1%eth0"]'}, "MW1013", "spec.hosts[0]"),
        ({"hosts": "httpbin.org"}, "MW1010", "spec.hosts"),
        ({"ipAddresses": "[192.0.2.7]"}, "MW1013", "spec.ipAddresses[0]"),
        ({"ipAddresses": "[192.0.2.0/33]"}, "MW1013", "spec.ipAddresses[0]"),
        ({"ipAddresses": "[192.0.2.0/255.255.255.0]"}, "MW1013", "spec.ipAddresses[0]"),
        ({"ipAddresses": '["fe80::1%eth0/64"]'}, "MW1013", "spec.ipAddresses[0]"),
        ({"ports": "[{number: 80}]"}, "MW1011", "spec.ports[0].protocol"),
        ({"ports": "[{number: 80, protocol: udp}]"}, "MW1013", "spec.ports[0].protocol"),
        ({"ports": "[{protocol: http}]"}, "MW1011", "spec.ports[0].number"),
        ({"ports": "[{number: 0, protocol: http}]"}, "MW1013", "spec.ports[0].number"),
        ({"ports": "[{number: 80, protocol: http, name: web}]"}, "MW1012", "spec.ports[0].name"),
        ({"sources": "[{kind: User, name: curl}]"}, "MW1013", "spec.sources[0].kind"),
        ({"sources": "[{kind: ServiceAccount}]"}, "MW1011", "spec.sources[0].name"),
        ({"matches": "[{kind: TCPRoute, name: any}]"}, "MW1013", "spec.matches[0].kind"),
        (
            {"matches": "[{apiGroup: access.smi-spec.io, kind: HTTPRouteGroup, name: x}]"},
            "MW1013",
            "spec.matches[0].apiGroup",
        ),
        ({"host": "[httpbin.org]"}, "MW1012", "spec.host"),
    ],
)
def test_invalid_egress_is_refused_with_its_field(fields: dict[str, str], code: str, field: str) -> None:
    """The object would allow more or less than it states if an invalid part were ignored."""
    assert ("error", code, field) in [complaint[:3] for complaint in complaints(_egress(**fields))]


def test_egress_is_refused_above_100000_destinations() -> None:
    """Each of its proxies gets every host at every port, so 400 hosts with 251 ports are too many."""
    hosts = f"[{', '.join(f'h{number}.example.org' for number in range(400))}]"
    at = [
        f"[{', '.join(f'{{number: {1 + number}, protocol: http}}' for number in range(n))}]"
        for n in (250, 251)
    ]
    assert complaints(_egress(hosts=hosts, ports=at[0])) == []
    text = _egress(hosts=hosts, ports=at[1])
    assert complaints(text) == [("error", "MW1013", "spec.ports", "")]
    assert reading(text).problems[0].expected == (
        "one Egress may have at most 100000 destinations (ports times hosts and ipAddresses), "
        "this one has 100400; remove ports, or split it into several Egresses"
    )


def test_egress_with_two_upstream_traffic_settings_is_refused() -> None:
    """OSM's webhook refuses them too; one setting beside route groups is allowed."""
    one = value(_egress(matches=f"[{LIMITS}, {GROUP}]"))
    assert isinstance(one, Egress)
    assert (one.limits, one.route_groups) == ("limits", ("books",))
    result = [complaint[:3] for complaint in complaints(_egress(matches=f"[{LIMITS}, {LIMITS}]"))]
    assert ("error", "MW1015", "spec.matches[1].kind") in result


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"sources": "[]"}, "spec.sources"),
        ({"ports": "[]"}, "spec.ports"),
        ({"hosts": "[]"}, "spec.hosts"),
        ({"hosts": ""}, "spec.hosts"),
        ({"hosts": '["*.example.com"]'}, "spec.hosts[0]"),
        ({"ports": "[{number: 443, protocol: https}]", "matches": f"[{GROUP}]"}, "spec.matches"),
    ],
)
def test_egress_without_effect_is_a_warning(fields: dict[str, str], field: str) -> None:
    """With IP ranges, an Egress for HTTP needs no hosts, and a wildcard host is accepted."""
    assert [(complaint[0], complaint[2]) for complaint in complaints(_egress(**fields))] == [
        ("warning", field)
    ]
    if field.startswith("spec.hosts"):
        assert complaints(_egress(**fields, ipAddresses="[192.0.2.0/24]")) == []


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("example.com", "example.com", True),
        ("example.com", "a.example.com", False),
        ("*.example.com", "a.example.com", True),
        ("*.example.com", "a.b.example.com", True),
        ("*.example.com", "*.b.example.com", True),
        ("*.example.com", "example.com", False),
        ("*.example.com", ".example.com", False),
        ("*.example.com", "anexample.com", False),
        ("*", "example.com", True),
    ],
)
def test_wildcard_covers_names_like_envoy(pattern: str, name: str, expected: bool) -> None:
    """Envoy's suffix matches of hosts and of TLS server names behave in the same way."""
    assert covers(pattern, name) is expected
