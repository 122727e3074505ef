"""Lint of certificates that gateways show: expired ones, and those for other names."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

import catalog.lint.problems
from catalog.lint.codes import Code
from catalog.lint.problems import Linter
from catalog.store.view import View
from meshwright.mesh.gateway.gateways import Listener
from meshwright.mesh.gateway.secrets import EdgeCertificate, TlsSecret
from tests.meshes import gateway as g

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
END = BEGIN + timedelta(days=80)
FIELD = "spec.listeners[0].tls.certificateRefs"
CODES = (Code.CERTIFICATE_OUT_OF_TIME, Code.CERTIFICATE_OF_OTHER_NAMES)


def shown(*names: str, name: str = "cert") -> TlsSecret:
    """Make a Secret with a certificate of 80 days."""
    return replace(g.tls_secret(name), certificate=EdgeCertificate(names, BEGIN, END))


def mesh_of(listener: Listener, *secrets: TlsSecret) -> View:
    """Make a mesh with one gateway."""
    return g.view(g.CLASS, g.gateway("edge", listener), *secrets)


def found(mesh: View, now: datetime | None = None) -> list[tuple[str, str, str, str, str]]:
    """Return code, severity, field, value and text of the problems with certificates."""
    return [
        (problem.code, problem.severity.value, problem.field, problem.value, problem.expected)
        for problem in catalog.lint.problems.problems(mesh, now)
        if problem.code in CODES
    ]


def codes(linter: Linter) -> list[str]:
    """Return the codes of the problems with certificates in the changed objects."""
    return [item.code for _, problems in linter.looks() for item in problems if item.code in CODES]


@pytest.mark.parametrize(
    ("now", "fault"),
    [
        (None, ""),
        (
            BEGIN - timedelta(minutes=6),
            "is valid only from 2026-01-01T00:00:00Z, so clients refuse it until then",
        ),
        (BEGIN - timedelta(minutes=5), ""),
        (BEGIN + timedelta(days=60, seconds=-1), ""),
        (
            BEGIN + timedelta(days=60),
            "expires at 2026-03-22T00:00:00Z, and less than a quarter of its life is left",
        ),
        (END, "expires at 2026-03-22T00:00:00Z, and less than a quarter of its life is left"),
        (END + timedelta(seconds=1), "expired at 2026-03-22T00:00:00Z, so clients refuse it"),
    ],
)
def test_certificate_out_of_time_is_a_warning(now: datetime | None, fault: str) -> None:
    """Both ends of the validity are included; clocks may differ by 5 minutes at its begin."""
    wanted = f"The certificate {fault}. Replace the content of Secret default/cert with a valid certificate."
    expected = [("MW2187", "warning", FIELD, "default/cert", wanted)] if fault else []
    assert found(mesh_of(g.https(), shown("shop.example")), now) == expected


def test_time_alone_makes_a_certificate_a_problem() -> None:
    """A later look of the same lint finds the problem."""
    linter = Linter(mesh_of(g.https(), shown("shop.example")))
    linter.at(BEGIN)
    assert codes(linter) == []
    linter.at(BEGIN + timedelta(days=1))
    assert codes(linter) == []
    linter.at(END + timedelta(days=1))
    assert codes(linter) == ["MW2187"]


@pytest.mark.parametrize(
    ("hostname", "names", "is_found"),
    [
        ("books.example", ("other.example",), True),
        ("books.example", ("books.example", "other.example"), False),
        ("books.example", ("*.example",), False),
        ("a.books.example", ("*.example",), True),
        ("books.example", ("*.books.example",), True),
        ("books.example", (), True),
        ("", ("other.example",), False),
        ("*.books.example", ("*.books.example",), False),
        ("*.books.example", ("a.books.example",), False),
        ("*.books.example", ("books.example",), True),
        ("*.books.example", ("*.example",), True),
        ("*.example", ("*.books.example",), False),
    ],
)
def test_certificate_for_other_names_is_a_warning(
    hostname: str, names: tuple[str, ...], *, is_found: bool
) -> None:
    """A wildcard of a certificate covers one label, and one of a listener also several."""
    named = ", ".join(names) or "no DNS name"
    wanted = (
        f"The listener is for {hostname}, and its certificates are for {named}. So clients that ask for "
        f"{hostname} refuse them. Refer to a Secret with a certificate for {hostname}, or correct the "
        "hostname."
    )
    expected = [("MW2188", "warning", FIELD, "default/cert", wanted)] if is_found else []
    assert found(mesh_of(g.https(hostname=hostname), shown(*names)), BEGIN) == expected


def test_one_fitting_certificate_of_several_is_enough() -> None:
    """The proxy chooses by the name that a client asks for."""
    secrets = (shown("books.example", name="one"), shown("other.example", name="two"))
    assert found(mesh_of(g.https("https", "books.example", "one", "two"), *secrets), BEGIN) == []
    problems = found(mesh_of(g.https("https", "third.example", "one", "two"), *secrets), BEGIN)
    assert [(code, value) for code, _, _, value, _ in problems] == [("MW2188", "default/one, default/two")]
