"""Commands about proxies and their certificates, for the command line, over the Unix socket only."""

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from aiohttp import web
from aiohttp.typedefs import Handler

from catalog.explain import reason_for_unknown
from catalog.store.view import View
from certs.errors import CertificateError, RequestError, StateError
from certs.keys.material import ProxyCertificate
from certs.ledger.contract import UnwrittenError
from certs.ledger.entry import LedgerEntry
from certs.lifetimes import MOST_DAYS
from meshwright.admin.http.audit import name_object
from meshwright.admin.jsonable import Json
from meshwright.admin.proxy_names import NothingToShow, find
from meshwright.admin.readers import ProxyReading
from meshwright.mesh.identity import ProxyName, is_proxy_name
from meshwright.mesh.names import Namespace, ProxyUuid, ServiceName, TrustDomain
from meshwright.sidecars.type_words import short_type
from xds.protocol.resources.resource import Reference

_NO_STORE = {"Cache-Control": "no-store"}
_UNTIL_RESTART = (
    "the revocation is in force in this server, which tries again to write it; if the server stops before "
    "that, the revocation is lost"
)


@dataclass(frozen=True, slots=True)
class ProxyRequest:
    """Request for a proxy certificate. `validity_days` None means the default of the server.

    `anyway` issues the certificate even if no known workload has the name. The certificate must be used for
    the first time within `claim_days`.
    """

    uuid: str
    service: str
    namespace: str
    validity_days: int | None = None
    anyway: bool = False
    claim_days: int | None = None

    @property
    def name(self) -> ProxyName:
        """The requested name, which may be invalid."""
        return ProxyName(ProxyUuid(self.uuid), ServiceName(self.service), Namespace(self.namespace))


class CommandError(ValueError):
    """Error for an invalid request to the command socket. The message names the valid form."""


class UnknownHolder(CommandError):
    """Error for a certificate request with a proxy name without a workload; suggests similar names."""

    def __init__(self, name: ProxyName, why: str) -> None:
        super().__init__(f"proxy {name} matches no workload: {why}")


class ProxyCertificates(Protocol):
    """Issuer of proxy certificates. Callers use a thread, because the methods may block."""

    def issue(self, request: ProxyRequest) -> ProxyCertificate:
        """Issue a proxy certificate. Raises CertificateError."""

    def revoke(self, serial: str, why: str) -> LedgerEntry:
        """Revoke a proxy certificate and store the reason `why`. Raises CertificateError."""

    def trust_bundle(self) -> bytes:
        """Return the root certificates to be trusted by proxies, as PEM."""

    @property
    def trust_domain(self) -> TrustDomain:
        """Return the trust domain of the mesh."""


@dataclass(frozen=True, slots=True)
class RevocationOutcome:
    """Number of servers at which a revocation is in force, of all servers; those without an answer."""

    in_force: int
    replicas: int
    silent: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class OfferedResources:
    """Resources that another server has offered to its proxy again."""

    name: ProxyName
    resources: tuple[str, ...]


class OtherServers(Protocol):
    """The other servers of the mesh, as commands need them."""

    async def revoked(self, serial: str, why: str) -> RevocationOutcome:
        """Bring a revocation in force at all other servers; this server counts in the outcome."""

    async def offered(self, wanted: str) -> OfferedResources | None:
        """Have the server of a proxy offer the rejected resources again; None if that is this server.

        Raises NothingToShow for an unknown proxy, and CommandError if the other server does not answer.
        """


def read_proxy_request(body: object) -> ProxyRequest:
    """Read the JSON of an issue-proxy request. Raises CommandError, which names the field."""
    if not isinstance(body, dict):
        raise CommandError("the body must be a JSON object")
    names = {}
    for field in ("uuid", "service", "namespace"):
        value = body.get(field)
        if not isinstance(value, str) or not value:
            raise CommandError(f"{field} must be a DNS-1123 label")
        names[field] = value
    validity, claim = (_days(body, field) for field in ("validity_days", "claim_days"))
    anyway = body.get("anyway", False)
    if not isinstance(anyway, bool):
        raise CommandError("anyway must be true or false")
    return ProxyRequest(names["uuid"], names["service"], names["namespace"], validity, anyway, claim)


def _days(body: Mapping[str, object], field: str) -> int | None:
    days = body.get(field)
    if days is None:
        return None
    if not isinstance(days, int) or isinstance(days, bool) or not 1 <= days <= MOST_DAYS:
        raise CommandError(f"{field} must be a whole number from 1 to {MOST_DAYS} (days)")
    return days


def require_holder(view: View | None, request: ProxyRequest) -> None:
    """Raise UnknownHolder if no workload has the proxy name. Without a view the name is accepted."""
    if view is None or request.anyway or not is_proxy_name(str(request.name)):
        return  # the issuer refuses an invalid name
    if why := reason_for_unknown(view, request.name):
        raise UnknownHolder(request.name, why)


@dataclass(frozen=True, slots=True)
class Commands:
    """Handlers of the commands.

    `revoked` is called on the event loop after a revocation. `retry` offers a proxy the rejected resources
    again and returns their references. `elsewhere` are the other servers of the mesh, None for the only
    server.
    """

    reading: ProxyReading
    proxies: ProxyCertificates
    revoked: Callable[[LedgerEntry], None]
    retry: Callable[[ProxyName], Iterable[Reference]]
    elsewhere: OtherServers | None = None

    async def issue(self, request: web.Request) -> web.Response:
        """Issue a proxy certificate. The answer contains the private key."""
        wanted = read_proxy_request(await body_of(request))
        require_holder(self.reading.view(), wanted)
        issued = await asyncio.to_thread(self.proxies.issue, wanted)
        name_object(request, serial=issued.serial, proxy=str(issued.name))
        return web.json_response(
            {
                "name": str(issued.name),
                "serial": issued.serial,
                "not_after": issued.not_after.isoformat(),
                "chain_pem": issued.chain_pem.decode("ascii"),
                "key_pem": issued.key.reveal().decode("ascii"),
                "trust_bundle_pem": self.proxies.trust_bundle().decode("ascii"),
                "trust_domain": self.proxies.trust_domain,
            },
            headers=_NO_STORE,
        )

    async def revoke(self, request: web.Request) -> web.Response:
        """Revoke a proxy certificate. The revocation is in force in this server even after a failed write."""
        body = await body_of(request)
        serial = _text(body, "serial", "a string of hexadecimal digits")
        why = _text(body, "reason", "a text", "")
        try:
            entry = await asyncio.to_thread(self.proxies.revoke, serial, why)
        except UnwrittenError as error:
            # The certificate must stop working now, even if the ledger could not store the revocation.
            self.revoked(error.entry)
            if self.elsewhere is None:
                raise StateError(f"{error}; {_UNTIL_RESTART}") from error
            outcome = await self.elsewhere.revoked(error.entry.serial, why)
            raise StateError(f"{error}; {not_kept(outcome)}") from error
        self.revoked(entry)
        name_object(request, serial=entry.serial, proxy=entry.common_name)
        return web.json_response(revoked_document(entry), headers=_NO_STORE)

    async def offer_again(self, request: web.Request) -> web.Response:
        """Offer a proxy the rejected resources again."""
        wanted = _text(await body_of(request), "proxy", "a UUID, common name or workload")
        try:
            offered = None if self.elsewhere is None else await self.elsewhere.offered(wanted)
            name = find(self.reading, wanted).name if offered is None else offered.name
        except NothingToShow as error:
            raise CommandError(str(error)) from error
        if offered is None:
            resources = [f"{short_type(kind)} {resource}" for kind, resource in self.retry(name)]
        else:
            resources = list(offered.resources)
        return web.json_response({"proxy": str(name), "offered": resources})


def not_kept(outcome: RevocationOutcome) -> str:
    """Return the outcome of a revocation that the shared store has not taken, for people."""
    silent = sorted(outcome.silent.items())
    others = "".join(f"; server {replica} does not answer: {why}" for replica, why in silent)
    return (
        f"the revocation is in force at {outcome.in_force} of {outcome.replicas} servers, not kept: they "
        f"try again to write it, and it is lost if all of them stop before that{others}"
    )


def revoked_document(entry: LedgerEntry) -> dict[str, Json]:
    """Return the JSON of a revoked certificate. The holder may join again by the proof `joined_by`."""
    return {"name": entry.common_name, "serial": entry.serial, "joined_by": entry.joined_by or None}


def add_commands(app: web.Application, commands: Commands) -> None:
    """Add POST /certs/issue-proxy, POST /certs/revoke and POST /proxies/retry.

    The answer to issue-proxy contains the new key. The key passes through a socket that only the server's
    user can open, and the server does not store the key.
    """
    app.router.add_post("/certs/issue-proxy", commands.issue)
    app.router.add_post("/certs/revoke", commands.revoke)
    app.router.add_post("/proxies/retry", commands.offer_again)


@web.middleware
async def explained(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer an error as JSON: `error`, one sentence.

    400 is the client's fault, 500 is ours, and 409 is for a certificate without a workload.
    """
    try:
        return await handler(request)
    except UnknownHolder as error:
        return _error(str(error), 409)
    except (CommandError, RequestError) as error:
        return _error(str(error), 400)
    except CertificateError as error:
        return _error(str(error), 500)


def _error(sentence: str, status: int) -> web.Response:
    body: dict[str, Json] = {"error": sentence}
    return web.json_response(body, status=status)


async def body_of(request: web.Request) -> object:
    """Return the JSON of a request. Raises CommandError."""
    try:
        return json.loads(await request.read())
    except (ValueError, RecursionError) as error:
        raise CommandError("the body must be JSON") from error


def _text(body: object, name: str, wanted: str, otherwise: str | None = None) -> str:
    """Return a text field of the body. Raises CommandError, which names the valid form."""
    value = body.get(name, otherwise) if isinstance(body, dict) else None
    if not isinstance(value, str):
        raise CommandError(f"{name} must be {wanted}")
    return value
