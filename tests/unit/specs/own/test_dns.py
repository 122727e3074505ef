"""Tests of the annotations that name a Service in the DNS."""

import pytest

from meshwright.mesh.names import Port
from meshwright.mesh.service import DnsName, Service
from tests.meshes.reading import complaints, value

DNS, SRV = "meshwright.dev/dns", "meshwright.dev/dns-srv"
ONE = "[{port: 5432, name: tcp}]"
TWO = "[{port: 80, name: http}, {port: 90, name: tcp, targetPort: main}]"
NAMED = "[{port: 90, name: tcp, targetPort: main}]"


def _service(annotation: str, text: str, ports: str = ONE) -> str:
    metadata = f"{{name: db, namespace: shop, annotations: {{{annotation}: '{text}'}}}}"
    return f"apiVersion: v1\nkind: Service\nmetadata: {metadata}\nspec: {{ports: {ports}}}"


def _names(annotation: str, text: str, ports: str = ONE) -> tuple[DnsName, ...]:
    result = value(_service(annotation, text, ports))
    assert isinstance(result, Service)
    return result.dns_names


def test_dns_names_with_and_without_a_port_are_read() -> None:
    """They are separated by spaces, lines or commas, and sorted in lower case without duplicates."""
    assert _names(DNS, "b.test, A.Test.:5 a.test:5,b.test a.test") == (
        DnsName("a.test"),
        DnsName("a.test", Port(5)),
        DnsName("b.test"),
    )
    assert _names(DNS, "") == ()
    assert _names(DNS, "a.test", TWO) == (DnsName("a.test"),)


def test_srv_names_are_read() -> None:
    """Their ports are in the DNS records."""
    assert _names(SRV, "_db._tcp.test db.service.test") == (
        DnsName("_db._tcp.test", srv=True),
        DnsName("db.service.test", srv=True),
    )


@pytest.mark.parametrize(
    ("annotation", "text", "ports"),
    [
        (DNS, "a..test", ONE),
        (DNS, "10.0.0.1", ONE),
        (DNS, "a.test:0", ONE),
        (DNS, "a.test:65536", ONE),
        (DNS, "a.test:", ONE),
        (DNS, "fd00::1", ONE),
        (DNS, "a.test:5", TWO),
        (DNS, "a.test", NAMED),
        (DNS, "x" * 64 + ".test", ONE),
        (SRV, "a.test:5", ONE),
        (SRV, "_db._tcp.test", TWO),
    ],
)
def test_invalid_dns_annotation_is_an_error_with_its_value(annotation: str, text: str, ports: str) -> None:
    """The problem names the annotation and the invalid name."""
    field = f"metadata.annotations[{annotation}]"
    assert complaints(_service(annotation, text, ports)) == [("error", "MW1013", field, f'"{text}"')]
