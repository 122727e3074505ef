"""Proxy certificates for the command line: by the running server, or in the state directory itself."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeVar

from certs.custody import rebuilt
from certs.errors import CertificateError
from certs.lifetimes import ProxyTerms
from meshwright.admin.http.commands import ProxyRequest, UnknownHolder, require_holder
from meshwright.admin.pages.mesh.certificates import offline_certificates
from meshwright.cli.errors import IssuingError, NegativeAnswer, ServerNotRunning, ServerRefused
from meshwright.cli.offline.mesh import read
from meshwright.cli.printing.files import place_for_credentials, write_credentials
from meshwright.cli.printing.responses import Found, required_records, with_remarks
from meshwright.cli.process.structlog_alone import on_standard_error
from meshwright.cli.socket.client import api, ask
from meshwright.controller.errors import MissingAuthority, SettingsError, StartupError, StateInUse
from meshwright.controller.identity.proxy_certificates import ProxyIssuing, without_server
from meshwright.controller.issuing.issuing import custody
from meshwright.controller.process import lock
from meshwright.controller.settings.settings import Settings, load
from meshwright.mesh.names import TrustDomain

START_SECONDS: Final = 30.0
"""Longest wait for a server that has locked the state directory, in seconds."""

UNASKED: Final = (
    "meshwright: the name was not compared with workloads, because the server is not running: give --mesh "
    "DIR to compare it with a directory"
)

_PAUSE_SECONDS: Final = 0.1

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class IssuedCertificate:
    """A written certificate; `made`: a new CA was created for it, in an empty directory.

    `unasked`: the name was not checked against the workloads of a mesh.
    """

    name: str
    serial: str
    not_after: str
    made: bool = False
    unasked: bool = False


def issue(
    state: Path,
    request: ProxyRequest,
    trust_domain: str,
    out: Path,
    *,
    mesh: Path | None = None,
    shared: bool = False,
) -> IssuedCertificate:
    """Issue a proxy certificate and write it to `out`; raise IssuingError on failure.

    Raises NegativeAnswer if the server's mesh, or the mesh in the directory `mesh`, has no workload with this
    name.
    """
    body = {
        "uuid": request.uuid,
        "service": request.service,
        "namespace": request.namespace,
        "validity_days": request.validity_days,
        "anyway": request.anyway,
        "claim_days": request.claim_days,
    }

    def by_server() -> IssuedCertificate:
        # The place first: the server issues only if the key can be written.
        with _place(out):
            answer = post_to_server(state, "/certs/issue-proxy", body)
            issued = IssuedCertificate(answer["name"], answer["serial"], answer["not_after"])
            files = answer["chain_pem"], answer["key_pem"], answer["trust_bundle_pem"]
            _write(out, issued, files, answer.get("trust_domain", ""))  # absent in answers of older servers
        return issued

    def here() -> IssuedCertificate:
        if mesh is not None:
            require_holder(read(mesh).view, request)
        issued = _issued_here(state, request, trust_domain, out, shared=shared)
        return replace(issued, unasked=mesh is None and not request.anyway)

    try:
        return by_either(by_server, here)
    except UnknownHolder as error:
        raise NegativeAnswer(error) from error


@contextmanager
def _place(out: Path) -> Iterator[None]:
    """Prepare the output directory before the certificate is issued, because its key exists only once.

    Raises IssuingError if `out` cannot be written.
    """
    with ExitStack() as opened:
        try:
            opened.enter_context(place_for_credentials(out))
        except OSError as error:
            raise IssuingError(
                f"cannot write to {out}: {error.strerror}; the certificate was not issued: give another "
                "directory with --out"
            ) from error
        yield


def made_in(state: Path) -> str:
    """Return the remark about a new CA, so that users notice a mistyped --state."""
    return f"meshwright: created a new CA in {state}, which was not a state directory before"


def candidates(state: Path, confirm: Sequence[str], *, everybody: bool) -> dict[str, object]:
    """Return the certificates presented by proxies to a server during the rebuilding of a ledger.

    The serials in `confirm` are confirmed first; with `everybody`, all candidates are. Raises IssuingError,
    and ServerNotRunning without a server.
    """
    try:
        serials = list(confirm)
        if everybody:
            shown = required_records(ask(state, "GET", "/certs/rebuild-ledger"), "candidates")
            serials = [str(item["serial"]) for item in shown]
        if serials:
            return _mapping(ask(state, "POST", "/certs/rebuild-ledger", body={"serials": serials}))
        return _mapping(ask(state, "GET", "/certs/rebuild-ledger"))
    except ServerRefused as error:
        raise IssuingError(str(error)) from error


def finish_rebuilding(state: Path, *, shared: bool = False) -> int:
    """Make the confirmed certificates the ledger, and return their number; the server must be stopped.

    Raises IssuingError.
    """
    try:
        lock.prepare(state, shared=shared)
        # Under the lock, so that no server starts with the old ledger meanwhile.
        with lock.hold_lock(state):
            return rebuilt(state)
    except StateInUse as error:
        raise IssuingError(f"{error}: stop the server first, then finish") from error
    except (StartupError, CertificateError) as error:
        raise IssuingError(str(error)) from error


def _mapping(answer: object) -> dict[str, object]:
    if not isinstance(answer, dict):
        raise IssuingError("the server's answer is not a JSON object, because the server has another version")
    return answer


def listed(state: Path, trust_domain: str, *, shared: bool = False) -> Found:
    """Return all certificates as `/api/v1/certificates` does; without a server, only proxies' certificates.

    Raises IssuingError.
    """

    def here() -> Found:
        with opened_here(state, trust_domain, shared=shared, new=False) as issuing:
            return offline_certificates(issuing.entries(), now(), issuing.opened_authority.standing())

    try:
        return by_either(lambda: with_remarks(api(state, "/certificates")), here)
    except MissingAuthority as error:
        raise IssuingError(str(error)) from error


def by_either(by_server: Callable[[], T], here: Callable[[], T]) -> T:
    """Call `by_server`; if no server runs, call `here`.

    Both are repeated while the state directory is in use, because a starting server locks the directory
    before it answers. Raises IssuingError after START_SECONDS.
    """
    limit = time.monotonic() + START_SECONDS
    while True:
        with suppress(ServerNotRunning):
            return by_server()
        try:
            return here()
        except StateInUse as error:
            # Another process, such as a starting server, has the lock. The next round calls the server, if it
            # answers by then.
            if time.monotonic() >= limit:
                raise IssuingError(str(error)) from error
        time.sleep(_PAUSE_SECONDS)


def post_to_server(state: Path, path: str, body: object) -> dict[str, str]:
    """Post a request to the running server, and return the answer.

    Raises ServerNotRunning, IssuingError and NegativeAnswer.
    """
    try:
        answer = ask(state, "POST", path, body=body)
    except ServerRefused as error:
        raise IssuingError(str(error)) from error
    if not isinstance(answer, dict):
        raise IssuingError("the server's answer is not a JSON object, because the server has another version")
    return answer


def _issued_here(
    state: Path, request: ProxyRequest, trust_domain: str, out: Path, *, shared: bool
) -> IssuedCertificate:
    with opened_here(state, trust_domain, shared=shared, new=True) as issuing, _place(out):
        made = issuing.issue(request)
        issued = IssuedCertificate(str(made.name), made.serial, made.not_after.isoformat(), issuing.made)
        authority = issuing.trust_bundle().decode()
        _write(out, issued, (made.chain_pem.decode(), made.key.reveal().decode(), authority), trust_domain)
    return issued


@contextmanager
def opened_here(state: Path, trust_domain: str, *, shared: bool, new: bool) -> Iterator[ProxyIssuing]:
    """Open the state directory of a stopped server, and yield the issuer of proxy certificates.

    `new`: create a CA in an empty directory. Raises IssuingError, StateInUse and MissingAuthority.
    """
    on_standard_error()
    domain = TrustDomain(trust_domain)
    keys = custody(settings_of(state, shared=shared))
    try:
        with without_server(
            state, domain, now, ProxyTerms(), shared=shared, new=new, custody=keys
        ) as issuing:
            yield issuing
    # Both are handled by the callers: `by_either` tries again, and messages name the serial or token.
    except (StateInUse, MissingAuthority):
        raise
    except (StartupError, CertificateError) as error:
        raise IssuingError(str(error)) from error


def settings_of(state: Path, *, shared: bool = False, passphrase: Path | None = None) -> Settings:
    """Return the settings of a directory's server from the environment and the config file.

    Raises IssuingError.
    """
    flags = {"state": state, "shared_state": shared or None, "key_passphrase_file": passphrase}
    try:
        return load(flags, nothing_to_read=True)
    except SettingsError as error:
        raise IssuingError(str(error)) from error


def now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def _write(out: Path, issued: IssuedCertificate, files: tuple[str, str, str], trust_domain: str) -> None:
    chain, key, authority = (file.encode("ascii") for file in files)
    try:
        write_credentials(out, chain, key, authority, trust_domain)
    except OSError as error:
        raise IssuingError(
            f"cannot write to {out}: {error.strerror}; the key of certificate {issued.serial} is lost: "
            f"revoke the certificate with `meshwright certs revoke {issued.serial}`"
        ) from error
