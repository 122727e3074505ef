"""`/debug/connectivity`: the policy for a request, and the actual state of every part on its path.

The page contains facts only. `meshwright.cli.connectivity` draws the conclusions, because the command also
sends the request.
"""

import asyncio
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from catalog.explain import Explanation, standing
from catalog.explain.sidecars import Sidecar
from catalog.oracle.decide import Request
from catalog.relations.backends.ports import spoken
from catalog.relations.backends.readiness import why_withheld
from catalog.relations.backends.workloads import backing
from catalog.store.inventory import by_identity, holder_of
from catalog.store.view import View
from certs.ledger.entry import LedgerEntry
from meshwright.admin.jsonable import Document, Json
from meshwright.admin.pages.calls import explain as explaining
from meshwright.admin.pages.calls import route_hops as on_the_way
from meshwright.admin.pages.calls.fields import QueryError
from meshwright.admin.pages.calls.sidecars import SidecarStatus, sidecar_states
from meshwright.admin.pages.proxies.differences import kept
from meshwright.admin.pages.proxies.proxies import known
from meshwright.admin.pages.proxies.proxy import ProxyPage, policy_of
from meshwright.admin.pages.proxies.pushes import push
from meshwright.admin.pages.proxies.streams import stream
from meshwright.admin.pages.proxies.sync_reason import newest, why
from meshwright.admin.proxy_names import NothingToShow
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import Namespace, ServiceName
from meshwright.mesh.service import Service, ServiceKey, ServicePort
from meshwright.mesh.workload import Workload
from meshwright.sidecars.type_words import short_type

USAGE: Final = explaining.USAGE


async def connectivity(
    reading: ProxyPage, query: Mapping[str, str], headers: Iterable[str], now: datetime
) -> Document:
    """Return the facts about one request. Raises QueryError, or NothingToShow for an unknown service.

    `callers` are the sidecars of the caller. `endpoints` are all endpoints, each with the reason if it gets
    no traffic. `called` are the sidecars of the endpoints that get traffic.
    """
    if not query:
        return {"usage": USAGE}
    view = reading.view()
    if view is None:
        raise NothingToShow("the server has not read its sources yet: try again in a few seconds")
    asked, service, port = _parse_request(view, query, headers)
    explanation, concerned = await asyncio.to_thread(explaining.explained, view, asked)
    issued = newest(await asyncio.to_thread(reading.ledger), now)
    there = on_the_way.behind(view, asked, port)
    callers = _callers(view, asked)
    called = tuple(
        dict.fromkeys(
            name
            for endpoint in there
            if endpoint.identity and not why_withheld(view, endpoint)
            for name in endpoint.proxies
        )
    )
    stood = sidecar_states(reading, dict.fromkeys((*concerned, *callers, *called)))
    sidecars = {name: sidecar_status.sidecar for name, sidecar_status in stood.items()}
    lacks = await asyncio.to_thread(_lacks, view, explanation, sidecars)
    shown = {
        name: _sidecar(reading, name, sidecar_status, issued, now)
        | {"lacks": list(lacks[name]), "brought": _brought(reading, name, explanation)}
        for name, sidecar_status in stood.items()
    }
    statuses = [
        sidecar_status.status
        for name, sidecar_status in stood.items()
        if name in callers and sidecar_status.status is not None
    ]
    policies = [made for status in statuses if (made := policy_of(reading, status)) is not None]
    turned_down = explanation.decision.turned_down
    return {
        "explained": explaining.compared_document(
            view, explanation, {name: sidecars[name] for name in concerned}
        ),
        "protocol": spoken(port, backing(view, service.key)).value,
        "turned_down": None if turned_down is None else turned_down.status,
        "callers": [
            shown[name] | on_the_way.dialled(view, caller, asked, service, there)
            for name, caller in callers.items()
        ],
        "endpoints": [on_the_way.endpoint(view, endpoint, policies) for endpoint in there],
        "called": [shown[name] for name in called],
    }


def _callers(view: View, request: Request) -> dict[ProxyName, Workload]:
    """Return the workloads with the caller's identity, by the proxy names of their sidecars."""
    running = () if request.identity is None else by_identity(view).lookup(request.identity)
    return {workload.proxy_name: workload for workload in running if workload.proxy_name is not None}


def _parse_request(
    view: View, query: Mapping[str, str], headers: Iterable[str]
) -> tuple[Request, Service, ServicePort]:
    """Return the request of the query, with the called Service and port."""
    if explaining.read_outside(view, query, ()) is not None:
        raise QueryError(
            f"to is {query['to']!r}, outside the mesh: use `meshwright explain` for such a request"
        )
    asked = explaining.read_request(_with_port(view, query), headers)
    if asked.identity is None:
        raise QueryError(
            f"from is {asked.client}: a caller outside the mesh does not have a sidecar: use `meshwright "
            "explain`"
        )
    service = view.services.get(asked.service)
    port = service.port(asked.port) if service is not None else None
    if service is None or port is None:
        raise NothingToShow(explaining.explained(view, asked)[0].steps[0].text)
    return asked, service, port


def _with_port(view: View, query: Mapping[str, str]) -> Mapping[str, str]:
    """Return the query with a port in `to`; a Service with one port needs no port in the query."""
    called = query.get("to", "")
    namespace, slash, name = called.partition("/")
    service = view.services.get(ServiceKey(Namespace(namespace), ServiceName(name)))
    if not slash or ":" in name or service is None:
        return query
    if len(service.ports) != 1:
        has = ", ".join(str(port.port) for port in service.ports) or "none"
        raise QueryError(f"to is {called!r}: must end with :PORT; the Service has the ports {has}")
    return {**query, "to": f"{called}:{service.ports[0].port}"}


def _lacks(
    view: View, explanation: Explanation, sidecars: Mapping[ProxyName, Sidecar]
) -> dict[ProxyName, tuple[str, ...]]:
    """Return, for each sidecar, the excluded parts of policy with an effect on this request."""
    whole = dict.fromkeys(sidecars, Sidecar())

    def because(known: Mapping[ProxyName, Sidecar]) -> tuple[str, ...]:
        return standing(view, explanation.request, explanation.decision, known).because

    # Reasons that hold even if all sidecars have everything are not the fault of one sidecar.
    besides = because(whole)
    return {
        name: tuple(
            text
            for text in (because(whole | {name: Sidecar(without=sidecar.without)}) if sidecar.without else ())
            if text not in besides
        )
        for name, sidecar in sidecars.items()
    }


def _sidecar(
    reading: ProxyPage,
    name: ProxyName,
    stood: SidecarStatus,
    issued: Mapping[str, LedgerEntry],
    now: datetime,
) -> Document:
    """Return the state of a sidecar.

    `said` is the reason in words. `types` has the last sent and last acknowledged version of each type.
    """
    of_it = known(reading, name, stood.streams, issued, iter((1,)), reading.ejected())
    more = "" if stood.status is None else why(stood.status, of_it, now)
    view = reading.view()
    holder = holder_of(view, name) if view is not None else None
    types: dict[str, Json] = {}
    for stream_status in stood.streams:
        types |= _types(stream(stream_status)["types"])
    refused = [
        f"{short_type(kind)} {resource}: {text or 'the text of the error is unknown'}"
        for kind, resource in reading.rejected(name)
        for text in (reading.refusal(name, kind, resource),)
    ]
    return {
        "proxy": str(name),
        "workload": None if holder is None else str(holder.key),
        "stands": stood.state.value,
        "said": "; ".join(filter(None, (stood.clause, more))),
        "rejected": list[Json](refused),
        "types": types,
    }


def _types(shown: Json) -> dict[str, Json]:
    """Return the state, sent version and acknowledged version of each resource type on a stream."""
    wanted = ("state", "version", "acknowledged_version")
    result = shown if isinstance(shown, dict) else {}
    return {
        kind: {name: item[name] for name in wanted} for kind, item in result.items() if isinstance(item, dict)
    }


def _brought(reading: ProxyPage, name: ProxyName, explanation: Explanation) -> Document | None:
    """Return the last push to a sidecar that was caused by a deciding object, or None if unknown."""
    decisive = {str(key) for key in explanation.decision.because}
    for item in reading.pushes(name):
        if any(f"{cause.kind} {cause.name}" in decisive for wave in item.waves for cause in wave.causes):
            return push(item, kept(reading, name))
    return None
