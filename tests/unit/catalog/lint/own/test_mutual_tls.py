"""Tests of lint for MutualTLS objects: each problem with object, field and value."""

import pytest

from catalog.lint.codes import Code
from catalog.lint.problems import problems
from meshwright.mesh.kinds import MUTUAL_TLS
from meshwright.mesh.names import Port, ServiceAccountName
from meshwright.mesh.policies.callers import IpRange
from meshwright.mesh.policies.mutual_tls import MutualTLS, PlainText, TlsMode
from meshwright.mesh.problems.problem import Severity
from meshwright.mesh.service import Protocol
from tests.meshes import values as a

SHOP = (
    a.service("shop", a.port(80, 8080), a.port(9000, 9000, Protocol.TCP)),
    a.workload("shop", "10.0.0.1"),
)
FIRST = (a.service("db", a.port(3306, 3306, Protocol.TCP_SERVER_FIRST)), a.workload("db", "10.0.0.2"))
BOOKS = a.route_group("books", a.match("books"))
NEAR = PlainText(ranges=(IpRange("10.0.0.0/8"),))
EVERYBODY = PlainText()
PERMISSIVE, STRICT = TlsMode.PERMISSIVE, TlsMode.STRICT
OPEN = (Code.PLAIN_TEXT, "m", "spec.mode", "Permissive")


def mtls(
    mode: TlsMode = PERMISSIVE,
    plaintext: PlainText | None = NEAR,
    name: str = "m",
    accounts: tuple[str, ...] = (),
    ports: tuple[int, ...] = (),
    created: str = "",
) -> MutualTLS:
    """Make a MutualTLS object in the namespace `default`."""
    return MutualTLS(
        a.policy_key(name),
        mode,
        tuple(map(ServiceAccountName, accounts)),
        tuple(map(Port, ports)),
        plaintext,
        created,
    )


def told(*things: object) -> list[tuple[Code, str, str, str]]:
    """Return code, object, field and value of the problems of MutualTLS objects, sorted."""
    codes = {code.value: code for code in Code}
    result = (
        problem for problem in problems(a.view(*things)) if problem.key and problem.key.kind == MUTUAL_TLS
    )
    return sorted(
        (codes[problem.code], problem.key.name, problem.field, problem.value)
        for problem in result
        if problem.key
    )


def overruled(name: str, mode: TlsMode = STRICT) -> tuple[Code, str, str, str]:
    """Return the problem of the overruled one of two equally specific MutualTLS objects."""
    return Code.OVERRULED_MUTUAL_TLS, name, "spec", str(mode)


@pytest.mark.parametrize(
    ("things", "expected"),
    [
        ((mtls(STRICT, None),), []),
        ((mtls(STRICT, EVERYBODY),), []),
        ((mtls(),), [OPEN]),
        ((mtls(plaintext=EVERYBODY),), [OPEN]),
        ((mtls(accounts=("shop",), ports=(8080,)),), [OPEN]),
        # Without `plaintext`, a permissive namespace admits every plain-text caller, and another one none.
        ((mtls(plaintext=None),), [(Code.NOBODY_IN_PLAIN_TEXT, "m", "spec.plaintext", "")]),
        ((mtls(plaintext=None), a.namespace("default", permissive=True)), [OPEN]),
        # Accounts, ports and sources that do not exist; a Service's port is not its target port.
        (
            (mtls(STRICT, None, accounts=("shop", "shap")),),
            [(Code.UNKNOWN_TLS_ACCOUNT, "m", "spec.serviceAccounts[1]", "shap")],
        ),
        ((mtls(STRICT, None, ports=(80,)),), [(Code.UNKNOWN_TLS_PORT, "m", "spec.ports", "80")]),
        (
            (mtls(plaintext=PlainText(services=(a.service_key("gone"),))),),
            [(Code.UNKNOWN_PLAIN_SOURCE, "m", "spec.plaintext.sources", "default/gone")],
        ),
        ((mtls(plaintext=PlainText(services=(a.service_key("shop"),))),), [OPEN]),
        ((BOOKS, mtls(plaintext=PlainText(matches=("books",)))), [OPEN]),
        (
            (BOOKS, mtls(plaintext=PlainText(matches=("boks",)))),
            [(Code.UNKNOWN_PLAIN_MATCH, "m", "spec.plaintext.matches", "boks")],
        ),
        # Servers that speak first are reported only for the ports of the object.
        ((*FIRST, mtls()), [OPEN, (Code.PLAIN_SERVER_FIRST, "m", "spec.plaintext", "")]),
        ((*FIRST, mtls(ports=(8080,))), [OPEN]),
        ((*FIRST, mtls(accounts=("shop",))), [OPEN]),
        # Of equally specific objects the oldest counts, then the first by name; specific ones may close all.
        ((mtls(), mtls(STRICT, None, "n")), [OPEN, overruled("n")]),
        ((mtls(), mtls(STRICT, None, "n", created="2026-01-01T00:00:00Z")), [overruled("m", PERMISSIVE)]),
        ((mtls(), mtls(STRICT, None, "n", ("shop",))), []),
        ((*FIRST, mtls(), mtls(STRICT, None, "n", ("db",))), [OPEN]),
        ((*FIRST, mtls(), mtls(STRICT, None, "n", ports=(8080, 9000, 3306))), []),
        ((mtls(), mtls(STRICT, None, "n", ports=(8080,))), [OPEN]),
        ((mtls(ports=(8080,)), mtls(STRICT, None, "n", ports=(9000,))), [OPEN]),
        ((mtls(ports=(8080, 9000)), mtls(STRICT, None, "n", ports=(9000,))), [OPEN, overruled("n")]),
    ],
)
def test_problem_of_a_mutual_tls_object_names_its_field_and_value(
    things: tuple[object, ...], expected: list[tuple[Code, str, str, str]]
) -> None:
    """Beside a shop with two ports, each set of objects has exactly the expected problems."""
    assert told(*SHOP, *things) == sorted(expected)


def test_open_workloads_are_reported_with_callers_and_ports() -> None:
    """A warning names callers, workloads and ports of each open object, so that it is easy to close."""
    (everybody,) = problems(a.view(*SHOP, mtls(plaintext=EVERYBODY)))
    (near,) = problems(a.view(*SHOP, mtls(accounts=("shop",), ports=(8080,))))
    (partly,) = problems(a.view(*SHOP, mtls(plaintext=EVERYBODY), mtls(STRICT, None, "n", ports=(8080,))))
    assert partly.expected.startswith(
        "Every client may call every workload of namespace default, where a more specific MutualTLS does "
        "not apply"
    )
    assert (everybody.severity, near.severity) == (Severity.WARNING, Severity.WARNING)
    assert everybody.expected == (
        "Every client may call every workload of namespace default without a certificate. Set the mode to "
        "Strict to refuse such calls."
    )
    assert near.expected == (
        "Clients in 10.0.0.0/8 may call shop at ports 8080 without a certificate. Set the mode to "
        "Strict to refuse such calls."
    )


def test_misspelt_account_is_reported_with_the_nearest_name() -> None:
    """The problem of an unknown account names the nearest existing account."""
    (problem,) = problems(a.view(*SHOP, mtls(STRICT, None, accounts=("shap",))))
    assert "shop" in problem.expected
