"""Logins to Vault: a token, an AppRole or a Kubernetes ServiceAccount, each renewed before its end.

Secrets are read from a file when needed, and stored only in the lease.
"""

import threading
from concurrent.futures import Future
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import ClassVar, Final

import structlog

from certs.errors import CertificateError, IssuerError, StateError
from certs.issuers.exchanges import Exchanges
from certs.issuers.vault.http import VaultApi, VaultRefused, mount
from certs.issuers.vault.responses import Lease, known_lease, lease

SERVICE_ACCOUNT_TOKEN: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
_FORBIDDEN: Final = 403
_LONGEST: Final = 64 * 1024
_PARTING: Final = 0.5
"""Limit, in seconds, for revoking the token when the server stops."""

_log = structlog.get_logger("certs.issuers.vault.login")


@dataclass(frozen=True, slots=True)
class ByToken:
    """Login at Vault with a token from a file, which another program may replace."""

    file: Path
    makes_tokens: ClassVar = False

    def login(self, api: VaultApi, now: datetime) -> Lease:
        """Read the token, and ask Vault for the remaining lifetime. Raises IssuerError, StateError."""
        (token,) = _words(self.file, 1, "a token")
        return known_lease(token, api.call("GET", "auth/token/lookup-self", token=token), now)


@dataclass(frozen=True, slots=True)
class ByAppRole:
    """Login at Vault by AppRole; the file has a role_id on the first line, a secret_id on the second."""

    file: Path
    at: str = "approle"
    makes_tokens: ClassVar = True

    def login(self, api: VaultApi, now: datetime) -> Lease:
        """Log in at Vault with the role_id and the secret_id. Raises IssuerError, StateError."""
        role, secret = _words(self.file, 2, "a role_id and a secret_id, one on each line")
        body = {"role_id": role, "secret_id": secret}
        return lease(api.call("POST", f"auth/{mount(self.at)}/login", body), now)


@dataclass(frozen=True, slots=True)
class ByKubernetes:
    """Login at Vault by a role of the Kubernetes method, with the file of the ServiceAccount's token."""

    role: str
    file: Path = SERVICE_ACCOUNT_TOKEN
    at: str = "kubernetes"
    makes_tokens: ClassVar = True

    def login(self, api: VaultApi, now: datetime) -> Lease:
        """Log in at Vault with the ServiceAccount's token. Raises IssuerError, StateError."""
        (token,) = _words(self.file, 1, "a ServiceAccount's token")
        return lease(api.call("POST", f"auth/{mount(self.at)}/login", {"role": self.role, "jwt": token}), now)


Login = ByToken | ByAppRole | ByKubernetes


class Session:
    """One login, reused while the token is valid. Thread-safe.

    One thread logs in, and the others wait for the result or the error. Otherwise the threads would ask an
    unresponsive Vault one after the other. During a renewal the other threads continue to use the present
    token.
    """

    def __init__(self, api: VaultApi, login: Login) -> None:
        self._api = api
        self._login = login
        self._lock = threading.Lock()
        self._lease: Lease | None = None
        self._coming: Future[Lease] | None = None
        self._logged_error = ""

    def token(self, now: datetime) -> str:
        """Return a valid token for Vault; log in if necessary. Raises IssuerError, StateError."""
        with self._lock:
            held, coming = self._lease, self._coming
            # Only one thread renews a token that is due; the others use it meanwhile.
            if held is not None and held.is_good(now) and not (coming is None and held.is_due(now)):
                return held.token
            if coming is None:
                self._coming = ours = Future[Lease]()
        if coming is not None:
            return coming.result().token
        return self._brought(ours, held, now).token

    def drop(self, token: str) -> None:
        """Discard this token after Vault has refused a call with the token."""
        with self._lock:
            held = self._lease
            if held is None or held.token != token:
                return
            self._lease = None
        self._leave(held, self._api)

    def close(self) -> None:
        """Revoke a token made by our login, if possible within a short time."""
        with self._lock:
            held, self._lease = self._lease, None
        if held is not None:
            self._leave(held, replace(self._api, seconds=_PARTING, exchanges=Exchanges()))

    def _brought(self, ours: Future[Lease], lease: Lease | None, now: datetime) -> Lease:
        """Log in at Vault, or renew a valid token, and pass the result to the waiting threads."""
        try:
            is_good = lease is not None and lease.is_good(now)
            result = self._renewed(lease, now) if lease and is_good else self._login.login(self._api, now)
        # BaseException, because the waiting threads need a result whatever ends this one.
        except BaseException as error:
            with self._lock:
                self._coming = None
            ours.set_exception(error)
            raise
        with self._lock:
            self._lease, self._coming = result, None
        ours.set_result(result)
        if lease is not None and result.token != lease.token:
            self._leave(lease, self._api)
        return result

    def _leave(self, lease: Lease, api: VaultApi) -> None:
        """Revoke a former token of our login, because Vault stores the token of each login."""
        if not self._login.makes_tokens:
            return
        try:
            api.call("POST", "auth/token/revoke-self", {}, lease.token)
        except CertificateError as error:
            if not _is_forbidden(error):  # 403: the token has ended already
                until = None if lease.ends is None else lease.ends.isoformat()
                _log.warning("Vault token cannot be revoked", until=until, reason=str(error))

    def _renewed(self, old_lease: Lease, now: datetime) -> Lease:
        """Return a longer lease: the token's renewal, or another login.

        A token can be renewed only up to the maximum lifetime; if the renewal does not extend the lifetime,
        log in again. If both fail, the current token is used until its end, and the reason is logged once.
        """
        try:
            if old_lease.renewable:
                renewed = lease(self._api.call("POST", "auth/token/renew-self", {}, old_lease.token), now)
                if old_lease.ends is not None and (renewed.ends is None or renewed.ends > old_lease.ends):
                    return renewed
        except IssuerError as error:
            if not _is_forbidden(error):
                return self._going_on(old_lease, error)
        try:
            return self._login.login(self._api, now)
        except CertificateError as error:
            return self._going_on(old_lease, error)

    def _going_on(self, lease: Lease, error: CertificateError) -> Lease:
        if str(error) != self._logged_error:
            self._logged_error = str(error)
            until = None if lease.ends is None else lease.ends.isoformat()
            _log.warning("Vault login cannot be renewed", until=until, reason=self._logged_error)
        return lease


def _is_forbidden(error: CertificateError) -> bool:
    return isinstance(error, VaultRefused) and error.status == _FORBIDDEN


def _words(file: Path, count: int, expected: str) -> list[str]:
    """Return the `count` lines of a small file with secrets; errors do not contain the lines."""
    try:
        with file.open("rb") as opened:
            # Bounded, because the path may name any file, for example a device.
            lines = opened.read(_LONGEST).decode("ascii").split("\n")
    except OSError as error:
        raise StateError(f"cannot read {file}, which must have {expected}: {error.strerror}") from error
    except ValueError:
        raise StateError(f"{file} must have {expected}, but it is not ASCII text") from None
    words = [line.strip() for line in lines if line.strip()]
    if len(words) != count or not all(word.isprintable() and " " not in word for word in words):
        raise StateError(f"{file} must contain only {expected}")
    return words
