"""Proxy certificates for the command line: by the running server, or from the state directory itself."""

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
from meshwright.cli.printing.responses import Found, records
from meshwright.cli.process.structlog_alone import on_standard_error
from meshwright.cli.socket.client import api, ask
from meshwright.controller.errors import MissingAuthority, SettingsError, StartupError, StateInUse
from meshwright.controller.identity.proxy_certificates import ProxyIssuing, without_server
from meshwright.controller.issuing.issuing import custody
from meshwright.controller.process import lock
from meshwright.controller.settings.settings import Settings, load
from meshwright.mesh.names import TrustDomain

START_SECONDS: Final = 30.0
"""How long a server that has the state directory may take until it answers."""

UNASKED: Final = (
    "meshwright: nobody knows whether a workload has this name: no server runs; --mesh DIR would have asked"
)

_PAUSE_SECONDS: Final = 0.1

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class IssuedCertificate:
    """A certificate that was written; `made`: with a CA that was made for it, in an empty directory.

    `unasked`: nobody could say whether a workload has the name.
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
    """Have a proxy certificate issued and write it to `out`; raise IssuingError.

    Raises NegativeAnswer where no workload has the name, as the server knows, or the directory `mesh`.
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
        with _place(out):
            answer = asked_of_server(state, "/certs/issue-proxy", body)
            issued = IssuedCertificate(answer["name"], answer["serial"], answer["not_after"])
            files = answer["chain_pem"], answer["key_pem"], answer["trust_bundle_pem"]
            _write(out, issued, files, answer.get("trust_domain", ""))  # an older server does not say it
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
    """Have a place for a certificate before it is issued, as it cannot be had again; raise IssuingError."""
    with ExitStack() as opened:
        try:
            opened.enter_context(place_for_credentials(out))
        except OSError as error:
            raise IssuingError(
                f"cannot write to {out}: {error.strerror}; no certificate was issued: give another directory "
                "with --out"
            ) from error
        yield


def made_in(state: Path) -> str:
    """Return what is said where a command has begun a mesh, as with a path that was mistaken it would."""
    return f"meshwright: a new CA was made in {state}: it was no state directory before"


def candidates(state: Path, confirm: Sequence[str], *, everybody: bool) -> dict[str, object]:
    """Return what proxies have shown to a server that rebuilds its ledger, some of it confirmed just now.

    Raises IssuingError; ServerNotRunning where no server does.
    """
    try:
        serials = list(confirm)
        if everybody:
            shown = records(_mapping(ask(state, "GET", "/certs/rebuild-ledger")), "candidates")
            serials = [str(each["serial"]) for each in shown]
        if serials:
            return _mapping(ask(state, "POST", "/certs/rebuild-ledger", body={"serials": serials}))
        return _mapping(ask(state, "GET", "/certs/rebuild-ledger"))
    except ServerRefused as error:
        raise IssuingError(str(error)) from error


def finish_rebuilding(state: Path, *, shared: bool = False) -> int:
    """Have what was confirmed be the ledger; return how many certificates that are. Raises IssuingError."""
    try:
        lock.prepare(state, shared=shared)
        with lock.held(state):
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
    """Return all certificates as `/api/v1/certificates` has them; without a server, those of proxies alone.

    Raises IssuingError.
    """

    def here() -> Found:
        with opened_here(state, trust_domain, shared=shared, new=False) as issuing:
            return offline_certificates(issuing.entries(), now(), issuing.whose.standing())

    try:
        return by_either(lambda: api(state, "/certificates"), here)
    except MissingAuthority as error:
        raise IssuingError(str(error)) from error


def by_either(by_server: Callable[[], T], here: Callable[[], T]) -> T:
    """Do it by the server, or without one; a server that starts has the directory before it answers."""
    limit = time.monotonic() + START_SECONDS
    while True:
        with suppress(ServerNotRunning):
            return by_server()
        try:
            return here()
        except StateInUse as error:
            if time.monotonic() >= limit:
                raise IssuingError(str(error)) from error
        time.sleep(_PAUSE_SECONDS)


def asked_of_server(state: Path, path: str, body: object) -> dict[str, str]:
    """Return the running server's answer; raise ServerNotRunning, IssuingError, NegativeAnswer."""
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
    """Open a state directory that no server uses; raise IssuingError, StateInUse, MissingAuthority."""
    on_standard_error()
    domain = TrustDomain(trust_domain)
    keys = custody(settings_of(state, shared=shared))
    try:
        with without_server(
            state, domain, now, ProxyTerms(), shared=shared, new=new, custody=keys
        ) as issuing:
            yield issuing
    except (StateInUse, MissingAuthority):
        raise
    except (StartupError, CertificateError) as error:
        raise IssuingError(str(error)) from error


def settings_of(state: Path, *, shared: bool = False, passphrase: Path | None = None) -> Settings:
    """Return the settings of a directory's server, as environment and config file have them.

    Raises IssuingError.
    """
    flags = {"state": state, "shared_state": shared or None, "key_passphrase_file": passphrase}
    try:
        return load(flags, nothing_to_read=True)
    except SettingsError as error:
        raise IssuingError(str(error)) from error


def now() -> datetime:
    """Return the time."""
    return datetime.now(UTC)


def _write(out: Path, issued: IssuedCertificate, files: tuple[str, str, str], trust_domain: str) -> None:
    chain, key, authority = (each.encode("ascii") for each in files)
    try:
        write_credentials(out, chain, key, authority, trust_domain)
    except OSError as error:
        raise IssuingError(
            f"cannot write to {out}: {error.strerror}; the key of certificate {issued.serial} is lost: "
            f"revoke the certificate with `meshwright certs revoke {issued.serial}`"
        ) from error
