"""Callers in plain text that MutualTLS objects admit, by workload and port.

Of several for one port of an identity's workloads one counts: those with ServiceAccounts before those for the
whole namespace, then those with ports, then the oldest (`metadata.creationTimestamp`; those without one
last), then the first by name. Without any, plain text is refused.
"""

from collections.abc import Iterator
from typing import Final

from catalog.policy.objects.ingress import requests, source_ranges
from catalog.policy.values.inbound import AccessRule
from catalog.relations.permissive import is_permissive
from catalog.store.own_policies import mutual_tls_in
from catalog.store.view import View
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.kinds import MUTUAL_TLS
from meshwright.mesh.names import Port
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.callers import IpRange
from meshwright.mesh.policies.mutual_tls import MutualTLS, PlainText, TlsMode
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.service import Protocol

EVERYWHERE: Final = (IpRange("0.0.0.0/0"), IpRange("::/0"))


def precedence(mutual_tls: MutualTLS) -> tuple[bool, bool, bool, str, PolicyKey]:
    """Return the sort key of a MutualTLS for one port of an identity's workloads."""
    return (
        not mutual_tls.accounts,
        not mutual_tls.ports,
        not mutual_tls.created,
        mutual_tls.created,
        mutual_tls.key,
    )


def deciding(view: View, identity: ServiceIdentity, port: Port) -> MutualTLS | None:
    """Return the MutualTLS that applies at a port of an identity's workloads."""
    return min(_for(view, identity, port), key=precedence, default=None)


def plain_rule(view: View, identity: ServiceIdentity, port: Port, protocol: Protocol) -> AccessRule | None:
    """Return the rule for callers in plain text at a port, or `None`.

    A port without HTTP has no visible requests, so callers admitted only for some requests are refused there.
    """
    mutual_tls = deciding(view, identity, port)
    if mutual_tls is None or (plain_text := admitted_by(view, mutual_tls)) is None:
        return None
    callers = callers_of(view, plain_text)
    matches = requests(view, mutual_tls.key.namespace, plain_text.matches)
    if not callers or matches == () or not (matches is None or protocol.is_http):
        return None
    return AccessRule(ObjectKey.from_name(MUTUAL_TLS, mutual_tls.key), callers, matches)


def admitted_by(view: View, mutual_tls: MutualTLS) -> PlainText | None:
    """Return the callers in plain text that a MutualTLS admits, or `None`."""
    if mutual_tls.mode is TlsMode.STRICT:
        return None
    if mutual_tls.plaintext is None and is_permissive(view, mutual_tls.key.namespace):
        return PlainText()
    return mutual_tls.plaintext


def callers_of(view: View, plain_text: PlainText) -> tuple[IpRange, ...]:
    """Return the address ranges of callers in plain text, sorted.

    A Service without endpoints adds no range.
    """
    return (
        EVERYWHERE
        if plain_text.from_everywhere
        else source_ranges(view, plain_text.services, plain_text.ranges)
    )


def _for(view: View, identity: ServiceIdentity, port: Port) -> Iterator[MutualTLS]:
    for mutual_tls in mutual_tls_in(view).lookup(identity.namespace):
        of_it = not mutual_tls.accounts or identity.service_account in mutual_tls.accounts
        if of_it and (not mutual_tls.ports or port in mutual_tls.ports):
            yield mutual_tls
