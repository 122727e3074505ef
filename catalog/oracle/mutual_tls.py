"""Decision of MutualTLS objects about a caller in plain text: a part of the oracle.

Written from docs/policy/traffic.md; see `catalog.oracle.decide`. A caller in plain text is without a
certificate. The caller is admitted at a port of a workload if and only if the MutualTLS in force there is
Permissive and `plaintext` has the caller in one of the sources (empty: anywhere) and the request among the
matches (empty: any). Without `plaintext` all callers are admitted in a permissive namespace, and refused
elsewhere. On ports without HTTP, requests are invisible, so a rule for some requests never admits a caller
there.

One object is in force per port of a workload: one with the ServiceAccount before one for the namespace, then
one with the port, then the oldest, or else the first by name. Callers with TLS are not concerned, whatever
their certificate.
"""

import enum

from catalog.oracle.callers import is_caller
from catalog.oracle.preconditions import accepts_everyone
from catalog.oracle.request.request import Request, fits
from catalog.oracle.targets import Place
from catalog.relations.backends.endpoints import addresses_behind
from catalog.store.own_policies import mutual_tls
from catalog.store.smi import http_route_groups
from catalog.store.view import View
from meshwright.mesh.policies.callers import IpRange, Outsider
from meshwright.mesh.policies.mutual_tls import MutualTLS, PlainText, TlsMode
from meshwright.mesh.policies.smi import PolicyKey


class PlainVerdict(enum.StrEnum):
    """Verdict of the MutualTLS in force at a port about a caller in plain text; only ADMITS admits."""

    ADMITS = "admits the request"
    STRICT = "has mode Strict, so it does not admit requests in plain text"
    NOBODY = (
        "does not list callers in plain text, and the namespace is not permissive, so it does not admit them"
    )
    OTHER_CLIENTS = "names other sources"
    OTHER_REQUESTS = "admits only other requests"
    DANGLING = "names only matches that do not exist"
    NO_HTTP = "is only for some requests, and the port does not speak HTTP"


def lets_plain_in(view: View, request: Request, place: tuple[Place, bool]) -> tuple[MutualTLS, ...]:
    """Return the MutualTLS that admits a request in plain text at a place; empty for a denial."""
    verdict = plain_verdict(view, request, place)
    return (verdict[0],) if verdict is not None and verdict[1] is PlainVerdict.ADMITS else ()


def plain_verdict(
    view: View, request: Request, place: tuple[Place, bool]
) -> tuple[MutualTLS, PlainVerdict] | None:
    """Return the MutualTLS in force at a place with its verdict.

    `None` without one, or for callers in TLS.
    """
    if not isinstance(request.client, Outsider) or request.client.is_encrypted:
        return None
    where, is_http = place
    table = mutual_tls(view)
    there = [table[key] for key in table if key.namespace == where.identity.namespace]
    for named_account, named_port in ((True, True), (True, False), (False, True), (False, False)):
        result = [
            item
            for item in there
            if (where.identity.service_account in item.accounts if named_account else not item.accounts)
            and (where.port in item.ports if named_port else not item.ports)
        ]
        if result:
            first = min(result, key=lambda item: (item.created == "", item.created, item.key.name))
            return first, _judge(view, request, first, is_http=is_http)
    return None


def _judge(view: View, request: Request, result: MutualTLS, *, is_http: bool) -> PlainVerdict:
    if result.mode is TlsMode.STRICT:
        return PlainVerdict.STRICT
    if result.plaintext is None:
        everybody = accepts_everyone(view, result.key.namespace)
        return PlainVerdict.ADMITS if everybody else PlainVerdict.NOBODY
    if not _is_source(view, request, result.plaintext):
        return PlainVerdict.OTHER_CLIENTS
    if not result.plaintext.matches:
        return PlainVerdict.ADMITS
    if not is_http:
        return PlainVerdict.NO_HTTP
    keys = [PolicyKey(result.key.namespace, name) for name in result.plaintext.matches]
    groups = [http_route_groups(view).get(key) for key in keys]
    matches = [match for group in groups if group is not None for match in group.matches]
    if not matches:
        return PlainVerdict.DANGLING
    fit = any(fits(match, request) for match in matches)
    return PlainVerdict.ADMITS if fit else PlainVerdict.OTHER_REQUESTS


def _is_source(view: View, request: Request, plain_text: PlainText) -> bool:
    if not plain_text.services and not plain_text.ranges:
        return True
    near = [*plain_text.ranges]
    for key in plain_text.services:
        near += [IpRange(f"{item}/{128 if ':' in item else 32}") for item in addresses_behind(view, key)]
    return any(is_caller(ip_range, request.client, view.settings.trust_domain) for ip_range in near)
