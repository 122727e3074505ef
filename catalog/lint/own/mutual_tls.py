"""Problems of MutualTLS objects: missing objects, precedence, and admitted callers in plain text."""

from collections.abc import Iterator

from catalog.lint.codes import Code
from catalog.lint.lint import Lint
from catalog.lint.own.subjects import Subjects, are_alike
from catalog.lint.wording import OR_OUTSIDE, Place, Suggestions
from catalog.policy.objects.ingress import requests
from catalog.policy.objects.mutual_tls import admitted_by, callers_of, deciding, precedence
from catalog.relations.backends.endpoints import addresses_behind
from catalog.store.own_policies import mutual_tls, mutual_tls_in
from catalog.store.smi import http_route_groups
from catalog.store.view import View
from meshwright.mesh.kinds import MUTUAL_TLS
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.mutual_tls import MutualTLS, PlainText, TlsMode
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.problems.problem import Problem
from meshwright.mesh.service import Protocol


def problems(lint: Lint, key: PolicyKey) -> Iterator[Problem]:
    """Yield the problems of a MutualTLS; admitting callers without a certificate is always one of them."""
    view = lint.view
    result, place = mutual_tls(view)[key], Place(view, ObjectKey.from_name(MUTUAL_TLS, key))
    its = Subjects.select(lint, key.namespace, result)
    yield from its.unknown_accounts(place, result, Code.UNKNOWN_TLS_ACCOUNT)
    yield from its.unknown_ports(place, result, Code.UNKNOWN_TLS_PORT)
    if (first := _overruling(view, result)) is not None:
        wanted = (
            f"MutualTLS {first.key} is for some of the same workloads and ports and takes "
            "precedence there, because it is older or first by name. Delete one of the two, "
            "or name different ServiceAccounts or ports."
        )
        yield place.error(Code.OVERRULED_MUTUAL_TLS, "spec", str(result.mode), wanted)
    elif result.mode is TlsMode.PERMISSIVE:
        yield from _of_plain(place, result, its)


def _of_plain(place: Place, result: MutualTLS, its: Subjects) -> Iterator[Problem]:
    view, field = place.view, "spec.plaintext"
    plain_text = admitted_by(view, result)
    if plain_text is None:
        wanted = (
            "The mode is Permissive, but the field is missing, so callers without a certificate are not "
            "admitted. List the callers in plain text ({} admits every "
            "caller), or set the mode to Strict."
        )
        yield place.warning(Code.NOBODY_IN_PLAIN_TEXT, field, "", wanted)
        return
    yield from _of_sources(place, plain_text)
    yield from _of_matches(place, plain_text)
    meant_for = [
        (protocol, deciding(view, identity, number) == result)
        for identity, number, protocol in its.serving
        if not result.ports or number in result.ports
    ]
    if meant_for and not any(decides for _, decides in meant_for):
        return  # more specific MutualTLS objects decide everything
    if any(protocol is Protocol.TCP_SERVER_FIRST and decides for protocol, decides in meant_for):
        wanted = (
            "The servers of a port speak first. A caller in plain text waits there without effect "
            "until its connection is closed. Call such a port only through a sidecar, with a "
            "certificate."
        )
        yield place.warning(Code.PLAIN_SERVER_FIRST, field, "", wanted)
    if (callers := callers_of(view, plain_text)) and requests(
        view, result.key.namespace, plain_text.matches
    ) != ():
        who = (
            "Every client" if plain_text.from_everywhere else f"Clients in {', '.join(map(str, callers[:5]))}"
        )
        whom = ", ".join(result.accounts) or f"every workload of namespace {result.key.namespace}"
        ports = f" at ports {', '.join(map(str, result.ports))}" if result.ports else ""
        but = (
            ""
            if all(decides for _, decides in meant_for)
            else (", where a more specific MutualTLS does not apply,")
        )
        wanted = (
            f"{who} may call {whom}{ports}{but} without a certificate. Set the mode to Strict "
            "to refuse such calls."
        )
        yield place.warning(Code.PLAIN_TEXT, "spec.mode", str(result.mode), wanted)


def _of_sources(place: Place, plain_text: PlainText) -> Iterator[Problem]:
    for service in plain_text.services:
        if not addresses_behind(place.view, service):
            wanted = (
                "The addresses of this Service are unknown, so this source is not in force yet. "
                "Start a workload of the Service."
            )
            if service not in place.view.services:
                wanted = (
                    f"This Service does not exist, {OR_OUTSIDE}, so this source is not in force yet. "
                    "Create the Service, or correct the name."
                )
            yield place.warning(Code.UNKNOWN_PLAIN_SOURCE, "spec.plaintext.sources", str(service), wanted)


def _of_matches(place: Place, plain_text: PlainText) -> Iterator[Problem]:
    groups, namespace = http_route_groups(place.view), place.key.namespace
    meant = Suggestions(
        lambda: (key.name for key in groups.values_unrecorded() if key.namespace == namespace)
    )
    for name in plain_text.matches:
        if PolicyKey(namespace, name) not in groups:
            wanted = (
                f"This HTTPRouteGroup does not exist in this namespace{meant.hint(name)}, so this entry "
                "is not in force. Create the group, or correct the name."
            )
            yield place.warning(Code.UNKNOWN_PLAIN_MATCH, "spec.plaintext.matches", name, wanted)


def _overruling(view: View, result: MutualTLS) -> MutualTLS | None:
    """Return the MutualTLS that takes precedence, if any.

    Both are equally specific, and overlap in ServiceAccounts and ports.
    """
    others = (item for item in mutual_tls_in(view).lookup(result.key.namespace) if are_alike(item, result))
    first = min((*others, result), key=precedence)
    return None if first.key == result.key else first
