"""Problems of narrowing: services are named that are not there, so that less is told than was meant."""

from collections.abc import Iterator
from typing import Final

from catalog.lint.codes import Code
from catalog.lint.lint import IN_LINT, Lint
from catalog.lint.wording import say
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
    """Yield what an object's narrowing names in vain; `none` and `*/*` name nobody."""
    for pattern in scope or ():
        if not fits_any(lint, pattern):
            wanted = f"no Service is called so{_elsewhere(lint, pattern)}; this adds nothing until one is"
            yield say(lint.view, key, Code.UNKNOWN_EGRESS, Severity.WARNING, _FIELD, str(pattern), wanted)


@derived
def fits_any(lint: Lint, pattern: ServicePattern) -> bool:
    """Say whether there is a Service that a pattern fits."""
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
    """Say where there is a Service of that name, if not there."""
    found = () if pattern.name is None else sorted(_by_name(lint).get(pattern.name, ()))
    return f", but {', '.join(map(str, found))} is" if found else ""
