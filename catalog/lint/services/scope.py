"""Problems of the annotation `egress-services`: names of missing Services."""

from collections.abc import Iterator
from typing import Final

from catalog.lint.codes import Code
from catalog.lint.lint import IN_LINT, Lint
from catalog.lint.wording import problem_of
from catalog.relations.permissive import services_in
from meshwright.engine.derived import derived
from meshwright.mesh.names import ServiceName
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.problems.problem import Problem, Severity
from meshwright.mesh.service import Scope, Service, ServiceKey, ServicePattern

_FIELD: Final = "metadata.annotations.meshwright.dev/egress-services"


def _name(key: ServiceKey, _: Service) -> tuple[ServiceName, ...]:
    return (key.name,)


_by_name: Final = IN_LINT.index("services by name", lambda lint: lint.view.services, _name)


def problems(lint: Lint, key: ObjectKey, scope: Scope) -> Iterator[Problem]:
    """Yield the patterns of an object without any fitting Service; `none` and `*/*` are never a problem."""
    for pattern in scope or ():
        if not fits_any(lint, pattern):
            wanted = (
                f"A Service with this name does not exist{_elsewhere(lint, pattern)}. The entry is not in "
                "force until a Service has the name."
            )
            yield problem_of(
                lint.view, key, Code.UNKNOWN_EGRESS, Severity.WARNING, _FIELD, str(pattern), wanted
            )


@derived
def fits_any(lint: Lint, pattern: ServicePattern) -> bool:
    """Return whether a pattern fits any Service."""
    match pattern:
        case ServicePattern(namespace=None, name=None):
            return True
        case ServicePattern(namespace=None, name=name) if name is not None:
            return name in _by_name(lint)
        case ServicePattern(namespace=namespace, name=None) if namespace is not None:
            return namespace in services_in(lint.view)
        case ServicePattern(namespace=namespace, name=name) if namespace is not None and name is not None:
            return ServiceKey(namespace, name) in lint.view.services
    return False


def _elsewhere(lint: Lint, pattern: ServicePattern) -> str:
    """Return a clause with Services of the same name in other namespaces, or an empty text."""
    result = () if pattern.name is None else sorted(_by_name(lint).get(pattern.name, ()))
    return f", but there is {', '.join(map(str, result))}" if result else ""
