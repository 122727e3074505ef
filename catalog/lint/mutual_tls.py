"""Problems of MutualTLS objects: what is not there, which of several counts; and what is open."""

from collections.abc import Iterator

from catalog.lint.codes import Code
from catalog.lint.lint import Lint
from catalog.lint.reach import workloads_in
from catalog.lint.told import Place, meant
from catalog.policy.ingress import requests
from catalog.policy.mutual_tls import admitted_by, callers_of, deciding, precedence
from catalog.relations.backing import services_of
from catalog.relations.endpoints import addresses_behind
from catalog.relations.ports import served
from catalog.store.own import mutual_tls, mutual_tls_in
from catalog.store.smi import http_route_groups
from catalog.store.view import View
from mesh.kinds import MUTUAL_TLS
from mesh.mutual_tls import MutualTLS, PlainText, TlsMode
from mesh.names import Port
from mesh.objects import ObjectKey
from mesh.policy import PolicyKey
from mesh.problems import Problem
from mesh.service import Protocol
from mesh.workload import Workload


def problems(lint: Lint, key: PolicyKey) -> Iterator[Problem]:
    """Yield the problems of a MutualTLS; one that lets somebody in without a certificate is always said."""
    view = lint.view
    found, place = mutual_tls(view)[key], Place(view, ObjectKey.of(MUTUAL_TLS, key))
    in_namespace = tuple(workloads_in(lint).found(key.namespace))
    yield from _of_accounts(place, found, in_namespace)
    its = [each for each in in_namespace if not found.accounts or _account(each) in found.accounts]
    serving = [each for workload in its if workload.uuid is not None for each in _served(view, workload)]
    yield from _of_ports(place, found, serving)
    if (first := _overruling(view, found)) is not None:
        wanted = f"MutualTLS {first.key} for the same is older or first by name; that one counts"
        yield place.error(Code.OVERRULED_MUTUAL_TLS, "spec", str(found.mode), wanted)
    elif found.mode is TlsMode.PERMISSIVE:
        yield from _of_plain(place, found, its)


def _of_accounts(place: Place, found: MutualTLS, there: tuple[Workload, ...]) -> Iterator[Problem]:
    names = sorted({_account(each) for each in there})
    for index, name in enumerate(found.accounts):
        if name not in names:
            wanted = f"no workload of the namespace has it{meant([name], names)}; it is for nobody"
            yield place.warning(Code.UNKNOWN_TLS_ACCOUNT, f"spec.serviceAccounts[{index}]", name, wanted)


def _of_ports(place: Place, found: MutualTLS, serving: list[tuple[Port, Protocol]]) -> Iterator[Problem]:
    numbers = sorted({number for number, _ in serving})
    for port in found.ports:
        if serving and port not in numbers:
            wanted = f"is no target port of its workloads, which have {', '.join(map(str, numbers))}"
            yield place.warning(Code.UNKNOWN_TLS_PORT, "spec.ports", str(port), wanted)


def _of_plain(place: Place, found: MutualTLS, its: list[Workload]) -> Iterator[Problem]:
    view, field = place.view, "spec.plaintext"
    said = admitted_by(view, found)
    if said is None:
        wanted = "nobody is let in by it: say who calls in plain text ({} is everybody)"
        yield place.warning(Code.NOBODY_IN_PLAIN_TEXT, field, "", wanted)
        return
    yield from _of_sources(place, said)
    yield from _of_matches(place, said)
    meant_for = [
        (protocol, deciding(view, each.identity, number) == found)
        for each in its
        if each.uuid is not None
        for number, protocol in _served(view, each)
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
            wanted = "no address is known behind this Service; nobody is let in by it until one is"
            yield place.warning(Code.UNKNOWN_PLAIN_SOURCE, "spec.plaintext.sources", str(each), wanted)


def _of_matches(place: Place, said: PlainText) -> Iterator[Problem]:
    groups, namespace = http_route_groups(place.view), place.key.namespace
    for name in said.matches:
        if PolicyKey(namespace, name) not in groups:
            there = [key.name for key in groups.held() if key.namespace == namespace]
            wanted = f"there is no such HTTPRouteGroup{meant([name], there)}; no request fits it"
            yield place.warning(Code.UNKNOWN_PLAIN_MATCH, "spec.plaintext.matches", name, wanted)


def _overruling(view: View, found: MutualTLS) -> MutualTLS | None:
    """Return which object of the same kind of subjects goes first at something that both are for."""
    others = (each for each in mutual_tls_in(view).found(found.key.namespace) if _is_alike(each, found))
    first = min((*others, found), key=precedence)
    return None if first.key == found.key else first


def _is_alike(each: MutualTLS, found: MutualTLS) -> bool:
    accounts = set(each.accounts) & set(found.accounts) or not (each.accounts or found.accounts)
    return bool(accounts) and bool(set(each.ports) & set(found.ports) or not (each.ports or found.ports))


def _served(view: View, workload: Workload) -> Iterator[tuple[Port, Protocol]]:
    services = [view.services[key] for key in services_of(view, workload.key)]
    for number, protocol, _ in served(services, workload.ports):
        yield number, protocol


def _account(workload: Workload) -> str:
    return workload.identity.service_account
