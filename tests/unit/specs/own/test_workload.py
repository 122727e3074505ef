"""Tests of the kind Workload."""

import pytest

from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import IpAddress, Namespace, Port, ProxyUuid, ServiceAccountName, ServiceName
from meshwright.mesh.service import Protocol, ServiceKey
from meshwright.mesh.workload import (
    Capture,
    Explicit,
    Transparent,
    Upstream,
    Workload,
    WorkloadKey,
    WorkloadPort,
)
from tests.meshes.reading import complaints, reading, value

NS = Namespace("shop")
UUID = "5b1c8d8e-1b1f-4b7e-9f5e-3f2a4f1f0c11"


def _workload(spec: str) -> str:
    return (
        "apiVersion: meshwright.dev/v1alpha1\nkind: Workload\n"
        f"metadata: {{name: cart-0, namespace: shop, labels: {{app: cart}}}}\nspec: {spec}"
    )


def test_workload_with_only_an_address_has_defaults() -> None:
    """All other fields are optional."""
    assert value(_workload("{address: '10.0.0.7'}")) == Workload(
        WorkloadKey(NS, "cart-0"),
        ServiceIdentity(NS, ServiceAccountName("default")),
        ServiceName("default"),
        IpAddress("10.0.0.7"),
        labels=(("app", "cart"),),
        interception=Transparent(),
    )


def test_workload_with_all_fields_is_read_in_canonical_form() -> None:
    """Upstreams have three notations; addresses are canonical, mapped ones too, and ports are sorted."""
    spec = f"""
  address: FD00:0::7
  serviceAccount: cart
  service: till
  uuid: {UUID}
  ports: [{{number: 9000, protocol: tcp-server-first}}, {{port: 80, name: web, protocol: http}}]
  applicationAddress: 127.0.0.1
  upstreams:
  - {{service: {{name: db, namespace: data}}, port: 3306, address: "::ffff:127.0.0.2", localPort: 13306}}
  - {{service: stock, port: 81}}
  - {{service: stock.far, port: 82}}
  locality: eu/a
  weight: 3
"""
    local = IpAddress("127.0.0.1")
    assert value(_workload(spec)) == Workload(
        WorkloadKey(NS, "cart-0"),
        ServiceIdentity(NS, ServiceAccountName("cart")),
        ServiceName("till"),
        IpAddress("fd00::7"),
        ProxyUuid(UUID),
        (
            WorkloadPort(Port(80), "web", Protocol.HTTP),
            WorkloadPort(Port(9000), "", Protocol.TCP_SERVER_FIRST),
        ),
        (("app", "cart"),),
        Explicit(
            local,
            (
                Upstream(
                    ServiceKey(Namespace("data"), ServiceName("db")),
                    Port(3306),
                    IpAddress("127.0.0.2"),
                    Port(13306),
                ),
                Upstream(ServiceKey(Namespace("far"), ServiceName("stock")), Port(82), local, Port(82)),
                Upstream(ServiceKey(NS, ServiceName("stock")), Port(81), local, Port(81)),
            ),
        ),
        "eu/a",
        3,
    )


def test_workload_with_upstreams_alone_has_explicit_interception() -> None:
    """A pure client has no application address."""
    result = value(_workload("{address: 10.0.0.7, upstreams: [{service: a, port: 80}]}"))
    assert isinstance(result, Workload)
    assert result.interception == Explicit(
        None,
        (Upstream(ServiceKey(NS, ServiceName("a")), Port(80), IpAddress("127.0.0.1"), Port(80)),),
    )


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("{}", Transparent()),
        ("{capture: redirect}", Transparent()),
        ("{capture: tproxy}", Transparent(Capture.TPROXY)),
        ("{ipv6: true}", Transparent(ipv6=True)),
        ("{capture: tproxy, ipv6: true}", Transparent(Capture.TPROXY, ipv6=True)),
    ],
)
def test_interception_of_a_workload_is_read_with_its_defaults(said: str, expected: Transparent) -> None:
    """The default is redirect for IPv4 only."""
    result = value(_workload(f"{{address: 10.0.0.7, interception: {said}}}"))
    assert isinstance(result, Workload)
    assert result.interception == expected


_ADDRESS = "address: 10.0.0.7"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("{}", ("error", "MW1011", "spec.address", "")),
        ("{address: 10.0.0.256}", ("error", "MW1013", "spec.address", '"10.0.0.256"')),
        ("{address: 0.0.0.0}", ("error", "MW1013", "spec.address", '"0.0.0.0"')),
        ("{address: '::'}", ("error", "MW1013", "spec.address", '"::"')),
        ("{address: 224.0.0.1}", ("error", "MW1013", "spec.address", '"224.0.0.1"')),
        ("{address: 255.255.255.255}", ("error", "MW1013", "spec.address", '"255.255.255.255"')),
        ("{address: '::ffff:0.0.0.0'}", ("error", "MW1013", "spec.address", '"::ffff:0.0.0.0"')),
        ("{address: '::ffff:224.0.0.1'}", ("error", "MW1013", "spec.address", '"::ffff:224.0.0.1"')),
        ("{address: 'fe80::1%eth0'}", ("error", "MW1013", "spec.address", '"fe80::1%eth0"')),
        ("{address: 7}", ("error", "MW1010", "spec.address", "7")),
        (f"{{{_ADDRESS}, uuid: A_B}}", ("error", "MW1013", "spec.uuid", '"A_B"')),
        (f"{{{_ADDRESS}, service: a.b}}", ("error", "MW1013", "spec.service", '"a.b"')),
        (f"{{{_ADDRESS}, serviceAccount: A}}", ("error", "MW1013", "spec.serviceAccount", '"A"')),
        (f"{{{_ADDRESS}, weight: 0}}", ("error", "MW1013", "spec.weight", "0")),
        (f"{{{_ADDRESS}, prots: []}}", ("error", "MW1012", "spec.prots", "a list of 0 items")),
        (f"{{{_ADDRESS}, authToken: hunter2}}", ("error", "MW1012", "spec.authToken", "(hidden)")),
        (f"{{{_ADDRESS}, ports: [{{port: 70000}}]}}", ("error", "MW1013", "spec.ports[0].port", "70000")),
        (f"{{{_ADDRESS}, ports: [{{port: 1}}, {{port: 1}}]}}", ("error", "MW1015", "spec.ports[1]", "1")),
        (
            f"{{{_ADDRESS}, ports: [{{port: 1, number: 2}}]}}",
            ("error", "MW1012", "spec.ports[0].number", "2"),
        ),
        (
            f"{{{_ADDRESS}, ports: [{{port: 1, protocol: udp}}]}}",
            ("error", "MW1013", "spec.ports[0].protocol", '"udp"'),
        ),
        (
            f"{{{_ADDRESS}, upstreams: [{{service: a}}]}}",
            ("error", "MW1011", "spec.upstreams[0].port", ""),
        ),
        (
            f"{{{_ADDRESS}, applicationAddress: 10.0.0.7}}",
            ("error", "MW1018", "spec.applicationAddress", '"10.0.0.7"'),
        ),
        (
            f"{{{_ADDRESS}, interception: {{capture: nat}}}}",
            ("error", "MW1013", "spec.interception.capture", '"nat"'),
        ),
        (
            f"{{{_ADDRESS}, interception: {{ipv6: 'yes'}}}}",
            ("error", "MW1010", "spec.interception.ipv6", '"yes"'),
        ),
        (
            f"{{{_ADDRESS}, interception: {{mode: tproxy}}}}",
            ("error", "MW1012", "spec.interception.mode", '"tproxy"'),
        ),
        (
            f"{{{_ADDRESS}, interception: {{ipv6: true}}, applicationAddress: 127.0.0.1}}",
            ("error", "MW1013", "spec.interception", "a mapping of 1 key"),
        ),
    ],
)
def test_invalid_workload_is_refused_with_its_field(spec: str, expected: tuple[str, str, str, str]) -> None:
    """Each invalid field is one problem with its value; the value of a secret is hidden."""
    assert complaints(_workload(spec)) == [expected]
    assert reading(_workload(spec)).objects == ()


@pytest.mark.parametrize(
    ("upstream", "other"),
    [
        ("{service: b, port: 81, localPort: 80}", "spec.upstreams[0]"),
        ("{service: b, port: 9, address: 10.0.0.7}", "the inbound listener of spec.ports[0]"),
        ("{service: b, port: 9, address: 127.0.0.9}", "the application's port spec.ports[0]"),
    ],
)
def test_colliding_listeners_are_a_problem_that_names_both(upstream: str, other: str) -> None:
    """The problem is at one of the two and names the other."""
    spec = (
        f"{{{_ADDRESS}, ports: [{{port: 9}}], applicationAddress: 127.0.0.9, "
        f"upstreams: [{{service: a, port: 80}}, {upstream}]}}"
    )
    (problem,) = reading(_workload(spec)).problems
    assert (problem.code, problem.field) == ("MW1018", "spec.upstreams[1]")
    assert problem.expected == (f"must have a unique address and port; {other} has the same")


@pytest.mark.parametrize(
    "port",
    ["port: 80, protocol: null", "port: 80, number: null", "number: 80, port: null, name: null"],
)
def test_null_field_of_a_port_is_ignored(port: str) -> None:
    """As everywhere, null means that the field is absent."""
    result = value(_workload(f"{{address: 10.0.0.7, ports: [{{{port}}}]}}"))
    assert isinstance(result, Workload)
    assert result.ports == (WorkloadPort(Port(80)),)


def test_port_with_both_names_of_its_number_is_refused() -> None:
    """`port` and `number` are two names of one field, and are refused together even if they are equal."""
    result = complaints(_workload("{address: 10.0.0.7, ports: [{port: 80, number: 80}]}"))
    assert [item[2] for item in result] == ["spec.ports[0].number"]
    (problem,) = reading(_workload("{address: 10.0.0.7, ports: [{port: 80, number: 80}]}")).problems
    assert problem.expected == (
        "port and number are two names of the same field, and port is given as well; remove one of them"
    )
