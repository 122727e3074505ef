"""DNS queries to nameservers; only this module uses the DNS library."""

import asyncio
from collections.abc import Sequence

import dns.asyncresolver
import dns.exception
import dns.message
import dns.nameserver
import dns.rcode
import dns.rdataclass
import dns.rdtypes.IN.SRV
import dns.resolver

from meshwright.mesh.names import Port
from meshwright.providers.dns.nameserver import DNS_PORT, Nameserver
from meshwright.providers.dns.records import DnsAnswer, DnsFailure, Question, RecordType, Target
from meshwright.specs.values.references import parse_address


async def ask(
    question: Question, nameservers: Sequence[Nameserver], seconds: float
) -> DnsAnswer | DnsFailure:
    """Return the answer to a question; a missing name is an answer, not a failure.

    The `nameservers` are queried in order, or the system's if there are none, for at most `seconds` in total.
    """
    try:
        resolver = _resolver(nameservers) if nameservers else await asyncio.to_thread(_resolver, ())
        resolver.lifetime = seconds
        answer = await resolver.resolve(
            f"{question.name}.", question.record.value, raise_on_no_answer=False, search=False
        )
        return _parse_answer(question, answer.chaining_result, _named(answer))
    except dns.resolver.NXDOMAIN as error:
        return DnsAnswer(_negative_ttl(error))
    except dns.resolver.LifetimeTimeout:
        return DnsFailure(f"timed out after {seconds:g} s")
    except dns.resolver.NoNameservers as error:
        return DnsFailure(_reason(error))
    except Exception as error:  # noqa: BLE001 - whatever the network sends, the last good answer stays
        return DnsFailure(f"{type(error).__name__}: {error}")


def _resolver(nameservers: Sequence[Nameserver]) -> dns.asyncresolver.Resolver:
    made = dns.asyncresolver.Resolver(configure=not nameservers)
    if nameservers:
        made.nameservers = [
            dns.nameserver.Do53Nameserver(nameserver.address, nameserver.port) for nameserver in nameservers
        ]
    return made


def _named(answer: dns.resolver.Answer) -> str:
    """Return the nameserver that gave an answer; empty if the library does not name one."""
    address = parse_address(answer.nameserver or "")
    return "" if address is None else str(Nameserver(address, answer.port or DNS_PORT))


def _parse_answer(question: Question, chain: dns.message.ChainingResult, nameserver: str) -> DnsAnswer:
    """Return the records of an answer; only addresses of a single machine are kept, no multicast."""
    records = tuple(chain.answer or ())
    ttl = float(chain.minimum_ttl)
    if question.record is RecordType.SRV:
        targets = (_target(record) for record in records if isinstance(record, dns.rdtypes.IN.SRV.SRV))
        kept = tuple(sorted({target for target in targets if target is not None}))
        return DnsAnswer(ttl, targets=kept, nameserver=nameserver)
    addresses = (parse_address(record.to_text()) for record in records)
    return DnsAnswer(
        ttl, tuple(sorted({address for address in addresses if address is not None})), nameserver=nameserver
    )


def _target(record: dns.rdtypes.IN.SRV.SRV) -> Target | None:
    """Return the target of a record; None if the target is a single dot, which means "no such service"."""
    name = record.target.to_text(omit_final_dot=True).lower()
    if name in ("", ".") or not record.port:
        return None
    return Target(record.priority, record.weight, Port(record.port), name)


def _negative_ttl(error: dns.resolver.NXDOMAIN) -> float:
    """Return the seconds for which the absence of a name is valid (RFC 2308)."""
    (response, *_) = error.kwargs["responses"].values()
    return float(response.resolve_chaining().minimum_ttl)


def _reason(error: dns.resolver.NoNameservers) -> str:
    """Return the error of each nameserver, in a text that stays equal while the cause is the same."""
    replies = {}
    for server, _, port, cause, response in error.kwargs.get("errors", ()):
        what = dns.rcode.to_text(response.rcode()) if response is not None else _cause(cause)
        replies[f"{server.removeprefix('Do53:').partition('@')[0]} port {port}"] = what
    return "; ".join(f"{server}: {what}" for server, what in replies.items()) or "no nameserver has answered"


def _cause(cause: object) -> str:
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror.lower()
    return type(cause).__name__ if isinstance(cause, Exception) else f"{cause}"
