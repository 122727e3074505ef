"""Problems of ExternalAuthorizations: missing objects, precedence, and ports without requests."""

from collections.abc import Iterator

from catalog.lint.codes import Code
from catalog.lint.lint import Lint
from catalog.lint.own.subjects import Subjects, are_alike
from catalog.lint.servers import behind_sidecars
from catalog.lint.wording import Place, meant
from catalog.policy.objects.authorization import precedence
from catalog.store.osm import extension_services, server_of
from catalog.store.own_policies import external_authorizations, external_authorizations_in
from catalog.store.view import View
from meshwright.mesh.kinds import EXTERNAL_AUTHORIZATION
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.authorization import ExternalAuthorization
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.problems.problem import Problem


def problems(lint: Lint, key: PolicyKey) -> Iterator[Problem]:
    """Yield the problems of an ExternalAuthorization."""
    view = lint.view
    found, place = external_authorizations(view)[key], Place(view, ObjectKey.of(EXTERNAL_AUTHORIZATION, key))
    its = Subjects.of(lint, key.namespace, found)
    yield from its.unknown_accounts(place, found, Code.UNKNOWN_ASKING_ACCOUNT)
    yield from its.unknown_ports(place, found, Code.UNKNOWN_ASKING_PORT)
    yield from _of_connections(place, found, its)
    if (first := _overruling(view, found)) is not None:
        wanted = (
            f"ExternalAuthorization {first.key} is for some of the same workloads and ports "
            "and takes precedence there, because it is older or first by name. Delete one of "
            "the two, or name different ServiceAccounts or ports."
        )
        yield place.error(Code.OVERRULED_AUTHORIZATION, "spec", _said(found), wanted)
    elif found.service is not None and server_of(view, found) is None:
        there = [each.name for each in extension_services(view) if each.namespace == found.service.namespace]
        silent = "passes" if found.authorizer is not None and found.authorizer.fails_open else "is refused"
        wanted = (
            f"ExtensionService {found.service} does not exist or is "
            f"invalid{meant([found.service.name], there)}. No authorizer answers, so every request "
            f"{silent}. Create or correct the ExtensionService."
        )
        yield place.error(Code.UNKNOWN_AUTHORIZER, "spec.extensionService", str(found.service), wanted)
    elif found.authorizer is not None and found.service is None:
        yield from behind_sidecars(view, place.key, (("spec.host", found.authorizer.server),))


def _of_connections(place: Place, found: ExternalAuthorization, its: Subjects) -> Iterator[Problem]:
    connections = {number for _, number, protocol in its.serving if not protocol.is_http}
    if found.authorizer is None:
        return
    for port in found.ports:
        if port in connections:
            wanted = (
                "This port does not speak HTTP, so the sidecar sees no requests there and "
                "does not ask the authorizer: policy alone decides. Remove the port, or set "
                "appProtocol: http in the Service if the port speaks HTTP."
            )
            yield place.warning(Code.NOT_ASKED_ABOUT, "spec.ports", str(port), wanted)


def _overruling(view: View, found: ExternalAuthorization) -> ExternalAuthorization | None:
    """Return an equally specific object with precedence for a common subject, if any."""
    there = external_authorizations_in(view).found(found.key.namespace)
    first = min((*(each for each in there if are_alike(each, found)), found), key=precedence)
    return None if first.key == found.key else first


def _said(found: ExternalAuthorization) -> str:
    if found.service is not None:
        return f"ExtensionService {found.service}"
    return "disabled" if found.authorizer is None else str(found.authorizer.server)
