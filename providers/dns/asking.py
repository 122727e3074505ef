"""Asking nameservers: the one place that knows the DNS library."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self

import dns.asyncresolver
import dns.exception
import dns.message
import dns.nameserver
import dns.rcode
import dns.rdataclass
import dns.rdtypes.IN.SRV
import dns.resolver

from mesh.names import IpAddress, Port
from providers.dns.records import Failed, Found, Question, RecordType, Target
from specs.references import parse_address

TIMEOUT_SECONDS: Final = 5.0
"""How long a question may take, over all nameservers and with its repetition over TCP."""

DNS_PORT: Final = 53


@dataclass(frozen=True, slots=True, order=True)
class Nameserver:
    """An address and port that answer questions."""

    address: IpAddress
    port: int = DNS_PORT

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read an IP address, or one with a port: `10.0.0.2`, `10.0.0.2:5353`, `[fd00::2]:53`."""
        if (address := parse_address(text)) is not None:
            return cls(address)
        host, colon, number = text.rpartition(":")
        host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
        address = parse_address(host)
        good = colon and number.isascii() and number.isdigit() and 1 <= int(number) <= 65535
        if address is None or not good or (":" in address and not text.startswith("[")):
            raise ValueError("must be IP addresses, or with ports such as 10.0.0.2:53 or [fd00::2]:53")
        return cls(address, int(number))

    def __str__(self) -> str:
        host = f"[{self.address}]" if ":" in self.address else self.address
        return self.address if self.port == DNS_PORT else f"{host}:{self.port}"


class Resolver:
    """Asks the nameservers given, in their order, or those of the system if there are none.

    Names are asked for as they are: neither search domains nor a hosts file count. The system's nameservers
    are looked up with each question, since they change.
    """

    def __init__(self, nameservers: Iterable[Nameserver] = (), timeout: float = TIMEOUT_SECONDS) -> None:
        self._nameservers = tuple(nameservers)
        self._timeout = timeout

    async def ask(self, question: Question) -> Found | Failed:
        """Return the answer to a question; that there is no such name is an answer, never a failure."""
        try:
            resolver = await asyncio.to_thread(self._resolver) if not self._nameservers else self._resolver()
            answer = await resolver.resolve(
                f"{question.name}.", question.record.value, raise_on_no_answer=False, search=False
            )
            return _found(question, answer.chaining_result, _named(answer))
        except dns.resolver.NXDOMAIN as error:
            return Found(_negative_ttl(error))
        except dns.resolver.LifetimeTimeout:
            return Failed(f"no answer within {self._timeout:g} s")
        except dns.resolver.NoNameservers as error:
            return Failed(_reason(error))
        except Exception as error:  # noqa: BLE001 - whatever came from the network, the last good answer stays
            return Failed(f"{type(error).__name__}: {error}")

    def _resolver(self) -> dns.asyncresolver.Resolver:
        made = dns.asyncresolver.Resolver(configure=not self._nameservers)
        if self._nameservers:
            made.nameservers = [
                dns.nameserver.Do53Nameserver(each.address, each.port) for each in self._nameservers
            ]
        made.lifetime = self._timeout
        return made


def _named(answer: dns.resolver.Answer) -> str:
    """Return the nameserver that answered; empty where the library does not say."""
    address = parse_address(answer.nameserver or "")
    return "" if address is None else str(Nameserver(address, answer.port or DNS_PORT))


def _found(question: Question, chain: dns.message.ChainingResult, nameserver: str) -> Found:
    """Return what an answer says; an address that is none of one machine is left out."""
    records = tuple(chain.answer or ())
    ttl = float(chain.minimum_ttl)
    if question.record is RecordType.SRV:
        targets = (_target(each) for each in records if isinstance(each, dns.rdtypes.IN.SRV.SRV))
        kept = tuple(sorted({each for each in targets if each is not None}))
        return Found(ttl, targets=kept, nameserver=nameserver)
    addresses = (parse_address(each.to_text()) for each in records)
    return Found(ttl, tuple(sorted({each for each in addresses if each is not None})), nameserver=nameserver)


def _target(record: dns.rdtypes.IN.SRV.SRV) -> Target | None:
    """Return the target of a record; None where it says that there is no such service (a single dot)."""
    name = record.target.to_text(omit_final_dot=True).lower()
    if name in ("", ".") or not record.port:
        return None
    return Target(record.priority, record.weight, Port(record.port), name)


def _negative_ttl(error: dns.resolver.NXDOMAIN) -> float:
    """Return how long a name's absence counts (RFC 2308)."""
    (response, *_) = error.kwargs["responses"].values()
    return float(response.resolve_chaining().minimum_ttl)


def _reason(error: dns.resolver.NoNameservers) -> str:
    """Say what each nameserver answered, without anything that differs from one time to the next."""
    said = {}
    for server, _, port, cause, response in error.kwargs.get("errors", ()):
        what = dns.rcode.to_text(response.rcode()) if response is not None else _cause(cause)
        said[f"{server.removeprefix('Do53:').partition('@')[0]} port {port}"] = what
    return "; ".join(f"{server}: {what}" for server, what in said.items()) or "no nameserver answered"


def _cause(cause: object) -> str:
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror.lower()
    return type(cause).__name__ if isinstance(cause, Exception) else f"{cause}"
