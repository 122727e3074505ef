"""Sends a report to the control plane's renewal port: one call of gRPC, on a connection of its own.

By grpclib, in this process: grpcio would stay in the memory of every agent, and a program that ends costs
hundreds of times as much as a call.
"""

import asyncio
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from grpclib import GRPCError, Status
from grpclib.client import Channel, UnaryUnaryMethod
from grpclib.config import Configuration
from grpclib.exceptions import ProtocolError, StreamTerminatedError

from agent.figures.protobuf import number_of
from mesh.host_port import HostPort
from sidecars.layout import AUTHORITY_FILE, CHAIN_FILE, KEY_FILE

REPORT: Final = "/meshwright.enrolment.v1.Renewal/Report"
SECONDS: Final = 20.0
_NEXT_AFTER: Final = 1
"""The field of ReportResponse."""


@dataclass(frozen=True, slots=True)
class _Written:
    """A message as its bytes, as grpclib wants messages to be."""

    content: bytes

    def SerializeToString(self) -> bytes:  # noqa: N802 - its name
        return self.content

    @classmethod
    def FromString(cls, content: bytes) -> Self:  # noqa: N802 - its name
        return cls(content)


class NotTaken(Exception):
    """The report was not taken; `refused`: nor will the next be, such as by an older control plane."""

    def __init__(self, why: str, *, refused: bool = False) -> None:
        super().__init__(why)
        self.refused = refused


async def send(at: HostPort, name: str, files: Path, report: bytes) -> int:
    """Send a report with the certificate in `files` to who is `name` by the roots there.

    Returns after how many seconds the next is wanted; raises NotTaken.
    """
    try:
        async with asyncio.timeout(SECONDS):
            context = await asyncio.to_thread(_context, files)
            channel = Channel(
                at.host, at.port, ssl=context, config=Configuration(ssl_target_name_override=name)
            )
            async with channel:
                answer = await UnaryUnaryMethod(channel, REPORT, _Written, _Written)(_Written(report))
    except GRPCError as error:
        refused = error.status in (Status.UNIMPLEMENTED, Status.INVALID_ARGUMENT)
        raise NotTaken(
            f"{at} answered {error.status.name.lower()}: {error.message}", refused=refused
        ) from None
    except (OSError, ProtocolError, StreamTerminatedError, TimeoutError) as error:
        raise NotTaken(f"{at} is not told: {str(error) or type(error).__name__}") from error
    try:
        return number_of(answer.content, _NEXT_AFTER)
    except ValueError as error:
        raise NotTaken(f"{at} answers what is no answer: {error}") from error


def _context(files: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    roots = (files / AUTHORITY_FILE).read_text("ascii", "ignore")  # in a comment may be more
    context.load_verify_locations(cadata=roots)
    context.load_cert_chain(files / CHAIN_FILE, files / KEY_FILE)
    context.set_alpn_protocols(["h2"])
    return context
