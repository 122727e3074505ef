"""Problems of MutualTLS objects: what is not there, which of several counts; and what is open."""

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
    """Yield the problems of a MutualTLS; one that lets somebody in without a certificate is always said."""
    view = lint.view
    found, place = mutual_tls(view)[key], Place(view, ObjectKey.of(MUTUAL_TLS, key))
    its = Subjects.of(lint, key.namespace, found)
    yield from its.unknown_accounts(place, found, Code.UNKNOWN_TLS_ACCOUNT)
    yield from its.unknown_ports(place, found, Code.UNKNOWN_TLS_PORT)
    if (first := _overruling(view, found)) is not None:
        wanted = f"MutualTLS {first.key} for the same is older or first by name; that one counts"
        yield place.error(Code.OVERRULED_MUTUAL_TLS, "spec", str(found.mode), wanted)
    elif found.mode is TlsMode.PERMISSIVE:
        yield from _of_plain(place, found, its)


def _of_plain(place: Place, found: MutualTLS, its: Subjects) -> Iterator[Problem]:
    view, field = place.view, "spec.plaintext"
    said = admitted_by(view, found)
    if said is None:
        wanted = "nobody is let in by it: say who calls in plain text ({} is everybody)"
        yield place.warning(Code.NOBODY_IN_PLAIN_TEXT, field, "", wanted)
        return
    yield from _of_sources(place, said)
    yield from _of_matches(place, said)
    meant_for = [
        (protocol, deciding(view, identity, number) == found)
        for identity, number, protocol in its.serving
        if not found.ports or number in found.ports
    ]
    if meant_for and not any(decides for _, decides in meant_for):
        return  # nearer ones say all
    if any(protocol is Protocol.TCP_SERVER_FIRST and decides for protocol, decides in meant_for):
        wanted = (
            "a port's server speaks first: who calls it in plain text waits in vain, and is cut off; "
            "a certificate is what such a port is called with"
        )
        yield place.warning(Code.PLAIN_SERVER_FIRST, field, "", wanted)
    if (callers := callers_of(view, said)) and requests(view, found.key.namespace, said.matches) != ():
        who = "anybody" if said.from_everywhere else f"whoever is in {', '.join(map(str, callers[:5]))}"
        whom = ", ".join(found.accounts) or f"every workload of {found.key.namespace}"
        ports = f" at ports {', '.join(map(str, found.ports))}" if found.ports else ""
        but = "" if all(decides for _, decides in meant_for) else ", where no other MutualTLS is nearer,"
        wanted = f"{who} calls {whom}{ports}{but} without a certificate; Strict ends that"
        yield place.warning(Code.PLAIN_TEXT, "spec.mode", str(found.mode), wanted)


def _of_sources(place: Place, said: PlainText) -> Iterator[Problem]:
    for each in said.services:
        if not addresses_behind(place.view, each):
            there = "no address is known behind this Service"
            if each not in place.view.services:
                there = f"there is no such Service, {OR_OUTSIDE}"
            wanted = f"{there}; this source admits no caller yet"
            yield place.warning(Code.UNKNOWN_PLAIN_SOURCE, "spec.plaintext.sources", str(each), wanted)


def _of_matches(place: Place, said: PlainText) -> Iterator[Problem]:
    groups, namespace = http_route_groups(place.view), place.key.namespace
    meant = Suggestions(lambda: (key.name for key in groups.held() if key.namespace == namespace))
    for name in said.matches:
        if PolicyKey(namespace, name) not in groups:
            wanted = f"there is no such HTTPRouteGroup{meant.of(name)}; no request fits it"
            yield place.warning(Code.UNKNOWN_PLAIN_MATCH, "spec.plaintext.matches", name, wanted)


def _overruling(view: View, found: MutualTLS) -> MutualTLS | None:
    """Return which object of the same kind of subjects goes first at something that both are for."""
    others = (each for each in mutual_tls_in(view).found(found.key.namespace) if are_alike(each, found))
    first = min((*others, found), key=precedence)
    return None if first.key == found.key else first
