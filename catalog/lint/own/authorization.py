"""Problems of ExternalAuthorizations: missing objects, precedence, and ports without HTTP requests."""

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
    authorization, place = (
        external_authorizations(view)[key],
        Place(view, ObjectKey.from_name(EXTERNAL_AUTHORIZATION, key)),
    )
    its = Subjects.select(lint, key.namespace, authorization)
    yield from its.unknown_accounts(place, authorization, Code.UNKNOWN_ASKING_ACCOUNT)
    yield from its.unknown_ports(place, authorization, Code.UNKNOWN_ASKING_PORT)
    yield from _of_connections(place, authorization, its)
    if (first := _overruling(view, authorization)) is not None:
        wanted = (
            f"ExternalAuthorization {first.key} is for some of the same workloads and ports "
            "and takes precedence there, because it is older or first by name. Delete one of "
            "the two, or name different ServiceAccounts or ports."
        )
        yield place.error(Code.OVERRULED_AUTHORIZATION, "spec", _authorizer_text(authorization), wanted)
    elif authorization.service is not None and server_of(view, authorization) is None:
        there = [
            service.name
            for service in extension_services(view)
            if service.namespace == authorization.service.namespace
        ]
        silent = (
            "passes"
            if authorization.authorizer is not None and authorization.authorizer.fails_open
            else "is refused"
        )
        wanted = (
            f"ExtensionService {authorization.service} does not exist or is "
            f"invalid{meant([authorization.service.name], there)}. The authorizer cannot answer, so every "
            f"request {silent}. Create or correct the ExtensionService."
        )
        yield place.error(
            Code.UNKNOWN_AUTHORIZER, "spec.extensionService", str(authorization.service), wanted
        )
    elif authorization.authorizer is not None and authorization.service is None:
        yield from behind_sidecars(view, place.key, (("spec.host", authorization.authorizer.server),))


def _of_connections(place: Place, authorization: ExternalAuthorization, its: Subjects) -> Iterator[Problem]:
    connections = {number for _, number, protocol in its.serving if not protocol.is_http}
    if authorization.authorizer is None:
        return
    for port in authorization.ports:
        if port in connections:
            wanted = (
                "This port does not speak HTTP, so the sidecar does not see requests there and does not "
                "ask the authorizer: policy alone decides. Remove the port, or set "
                "appProtocol: http in the Service if the port speaks HTTP."
            )
            yield place.warning(Code.NOT_ASKED_ABOUT, "spec.ports", str(port), wanted)


def _overruling(view: View, authorization: ExternalAuthorization) -> ExternalAuthorization | None:
    """Return the ExternalAuthorization that takes precedence, if any.

    Both are equally specific, and overlap in ServiceAccounts and ports.
    """
    there = external_authorizations_in(view).lookup(authorization.key.namespace)
    first = min(
        (*(other for other in there if are_alike(other, authorization)), authorization),
        key=precedence,
    )
    return None if first.key == authorization.key else first


def _authorizer_text(authorization: ExternalAuthorization) -> str:
    if authorization.service is not None:
        return f"ExtensionService {authorization.service}"
    return "disabled" if authorization.authorizer is None else str(authorization.authorizer.server)
