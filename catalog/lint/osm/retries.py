"""Problems of Retry objects: unknown sources and destinations, and precedence."""

from collections.abc import Iterator
from functools import partial

from catalog.lint.codes import Code
from catalog.lint.lint import Lint
from catalog.lint.wording import OR_OUTSIDE, Suggestions, problem_of
from catalog.policy.objects.retries import in_force
from catalog.relations.backends.protocols import protocol_of
from catalog.relations.permissive import services_in
from catalog.store.inventory import by_identity
from catalog.store.view import View
from meshwright.mesh.kinds import RETRY
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.retries import Retry
from meshwright.mesh.problems.problem import Problem, Severity
from meshwright.mesh.service import ServiceKey


def problems(lint: Lint, retry: Retry) -> Iterator[Problem]:
    """Yield the problems of a Retry."""
    view, key = lint.view, ObjectKey.from_name(RETRY, retry.key)
    if not by_identity(view).lookup(retry.source):
        wanted = (
            "A workload with this ServiceAccount does not exist, so the Retry is not in force. Create the "
            "workload, or correct the name."
        )
        name = retry.source.service_account
        yield problem_of(
            view, key, Code.UNKNOWN_RETRY_SOURCE, Severity.WARNING, "spec.source.name", name, wanted
        )
    decided = in_force(view, retry.source)
    meant: dict[Namespace, Suggestions] = {}
    for destination in retry.destinations:
        first = decided[destination]
        if destination not in view.services:
            namespace = destination.namespace
            here = meant.setdefault(namespace, Suggestions(partial(_services, view, namespace)))
            or_outside = "" if namespace == key.namespace else f", {OR_OUTSIDE}"
            wanted = (
                f"This Service does not exist{here.hint(destination.name)}{or_outside}, so calls to it "
                "are not retried. Create the Service, or correct the name."
            )
            yield _of(view, key, Code.UNKNOWN_RETRY_DESTINATION, destination, wanted)
        elif first.key != retry.key:
            wanted = (
                f"Retry {first.key} has the same source and destination and takes precedence, "
                "because it is older or first by name. Remove the destination from one of the "
                "two."
            )
            yield _of(view, key, Code.OVERRULED_RETRY, destination, wanted)
        elif not _speaks_http(view, destination):
            wanted = (
                "The Service lacks a port with HTTP, and sidecars see requests only on HTTP ports, so "
                "calls to it are not retried. Set appProtocol: http in the Service if a "
                "port speaks HTTP."
            )
            yield _of(view, key, Code.RETRY_OF_NO_REQUESTS, destination, wanted)


def _services(view: View, namespace: Namespace) -> Iterator[str]:
    return (service_key.name for service_key in services_in(view).get(namespace, ()))


def _speaks_http(view: View, key: ServiceKey) -> bool:
    return any(protocol_of(view, key, port).is_http for port in view.services[key].ports)


def _of(view: View, key: ObjectKey, code: Code, destination: ServiceKey, wanted: str) -> Problem:
    severity = Severity.ERROR if code is Code.OVERRULED_RETRY else Severity.WARNING
    return problem_of(view, key, code, severity, "spec.destinations", str(destination), wanted)
