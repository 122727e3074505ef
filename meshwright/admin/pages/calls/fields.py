"""Fields of the queries about requests, and steps of an explanation as JSON."""

from collections.abc import Iterable

from catalog.explain import Step
from catalog.explain.enforcement import EnforcementState
from meshwright.admin.jsonable import Json
from meshwright.mesh.names import Port, is_dns_label, is_dns_subdomain


class QueryError(ValueError):
    """Error for an invalid query about a request; the message describes the valid form."""


def read_pair(field: str, text: str, form: str) -> tuple[str, str]:
    """Return namespace and name in a text of the form `namespace/name`. Raises QueryError."""
    namespace, slash, name = text.partition("/")
    if not slash or not is_dns_label(namespace) or not is_dns_subdomain(name):
        raise QueryError(f"{field} is {text[:200]!r}: must be {form}")
    return namespace, name


def read_port(field: str, text: str, number: str, form: str) -> Port:
    """Return the port in a part of a field's text, which has a form. Raises QueryError."""
    if not (number.isascii() and number.isdigit()):
        raise QueryError(f"{field} is {text[:200]!r}: must be {form}")
    # Six digits at most, so that int() is cheap for any input.
    if not 1 <= int(number[:6]) <= 65535:
        raise QueryError(f"{field} is {text[:200]!r}: the port must be 1 to 65535")
    return Port(int(number))


def read_header(text: str) -> tuple[str, str]:
    """Return name and value in a text of the form `name: value`. Raises QueryError."""
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise QueryError(f"header is {text[:200]!r}: must be 'name: value'")
    return name.strip(), value.strip()


def only_policy(subject: str) -> dict[str, Json]:
    """Return the fields of an explanation about the sidecars, which are not compared for some calls.

    For example, `subject` is `a gateway`.
    """
    why = (
        f"for a call to {subject} only policy is evaluated; `meshwright proxies` shows whether the proxies "
        "of a running server have their newest configuration"
    )
    return {"in_force": EnforcementState.NOT_ASKED.value, "in_force_because": [why]}


def steps_in_json(steps: Iterable[Step]) -> list[Json]:
    """Return the steps of an explanation as JSON."""
    return [
        {
            "depth": step.depth,
            "text": step.text,
            "objects": [{"object": str(key), "origin": str(origin)} for key, origin in step.objects],
        }
        for step in steps
    ]
