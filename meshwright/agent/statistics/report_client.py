"""Client for sending a report to the control plane's renewal port."""

import asyncio
import ssl
from pathlib import Path
from typing import Final

from meshwright.agent.credentials import show_own
from meshwright.agent.server_rotation import ServerRotation
from meshwright.agent.statistics.grpc_call import CallFailed, call
from meshwright.agent.statistics.protobuf import number_of
from meshwright.mesh.host_port import HostPort
from meshwright.sidecars.layout import AUTHORITY_FILE

REPORT: Final = "/meshwright.enrolment.v1.Renewal/Report"
SECONDS: Final = 20.0
_INVALID_ARGUMENT, _UNIMPLEMENTED = 3, 12
_NEXT_AFTER: Final = 1
"""Field number in ReportResponse."""


class ReportRefused(Exception):
    """The report was not accepted.

    `refused`: later reports will not be accepted either, for example by an older control plane. `unfit`: this
    report will never be accepted.
    """

    def __init__(self, why: str, *, refused: bool = False, unfit: bool = False) -> None:
        super().__init__(why)
        self.refused = refused
        self.unfit = unfit


async def send_to_any(servers: ServerRotation, name: str, files: Path, report: bytes) -> int:
    """Send a report to one server after another until one accepts it; `name` and `files` as for `send`.

    A report counts at the server that accepts it. An unfit report is sent once only, because all servers
    judge it alike. Returns the seconds until the next report; raises ReportRefused with all reasons.
    """
    failures = list[ReportRefused]()
    for at in servers.order():
        try:
            seconds = await send(at, name, files, report)
        except ReportRefused as error:
            if error.unfit:
                raise
            failures.append(error)
        else:
            servers.answered(at)
            return seconds
    why = "; ".join(dict.fromkeys(map(str, failures)))
    raise ReportRefused(why, refused=all(error.refused for error in failures))


async def send(at: HostPort, name: str, files: Path, report: bytes) -> int:
    """Send a report, with the certificate in `files`, to a server, verified as `name` by the roots there.

    Returns the seconds until the next report; raises ReportRefused.
    """
    try:
        async with asyncio.timeout(SECONDS):
            context = await asyncio.to_thread(_context, files)
            answer = await call(at, name, context, REPORT, report)
        return number_of(answer, _NEXT_AFTER)
    except CallFailed as error:
        unfit = error.status == _INVALID_ARGUMENT
        refused = unfit or error.status == _UNIMPLEMENTED
        why = f"{at} answered with status {error.status}: {error}"
        raise ReportRefused(why, refused=refused, unfit=unfit) from None
    except (OSError, ValueError, TimeoutError) as error:
        raise ReportRefused(f"cannot report to {at}: {str(error) or type(error).__name__}") from error


def _context(files: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    roots = (files / AUTHORITY_FILE).read_text("ascii", "ignore")  # comments in PEM may have other characters
    context.load_verify_locations(cadata=roots)
    show_own(context, files)
    context.set_alpn_protocols(["h2"])
    return context
