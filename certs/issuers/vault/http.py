"""Calls to a Vault's HTTP API: blocking, with the server's own words in errors.

Secrets are sent only in headers and bodies. Texts quoted in errors are cleared of secrets.
"""

import http.client
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlsplit

from certs.errors import IssuerError, StateError
from certs.issuers.exchanges import Answered, Exchanges, Line, Question

SECONDS: Final = 10.0
"""Limit of one call in seconds, from the DNS look-up to the last byte of the answer."""

_SHOWN: Final = 300

Answer = Mapping[str, object]


class VaultRefused(IssuerError):
    """Error for an answer of Vault without success; `status` is the HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class VaultApi:
    """Address of a Vault (for example `https://vault.example:8200`), the CA file, and the namespace to use.

    Without `ca` the system's CAs are trusted. `exchanges.stop()` ends all calls.
    """

    address: str
    ca: Path | None = None
    namespace: str = ""
    seconds: float = SECONDS
    exchanges: Exchanges = field(default_factory=Exchanges, repr=False, compare=False)

    def call(self, method: str, path: str, body: Answer | None = None, token: str = "") -> Answer:
        """Call Vault, and return the JSON of the answer.

        Raises VaultRefused for an answer without success, else IssuerError.
        """
        hidden = tuple(filter(None, (token, *_texts(body or {}))))
        try:
            status, content = self._exchanged(method, path, body, token)
        except (OSError, UnicodeError, http.client.HTTPException) as error:  # UnicodeError: invalid host name
            # `from None`: the text of the cause may contain a header.
            text = _without(str(error) or type(error).__name__, hidden)
            raise IssuerError(f"Vault {self.address} cannot be reached: {text[:_SHOWN]}") from None
        result = _read(content)
        if 200 <= status < 300 and result is not None:
            return result
        raise VaultRefused(status, f"Vault {self.address} {_refusal(status, result, path, hidden)}")

    def _exchanged(self, method: str, path: str, body: Answer | None, token: str) -> Answered:
        headers = {"Accept": "application/json", "X-Vault-Request": "true"}
        if token:
            headers["X-Vault-Token"] = token
        if self.namespace:
            headers["X-Vault-Namespace"] = self.namespace
        content = None if body is None else json.dumps(body)
        path = f"{urlsplit(self.address).path.rstrip('/')}/v1/{path}"
        return self.exchanges.ask(self._line(), Question(method, path, content, headers), self.seconds)

    def _line(self) -> Line:
        parts = urlsplit(self.address)
        host = parts.hostname or ""
        if parts.scheme == "http":
            return Line(host, parts.port or http.client.HTTP_PORT, self.seconds, None)
        return Line(host, parts.port or http.client.HTTPS_PORT, self.seconds, self._context())

    def _context(self) -> ssl.SSLContext:
        """Return a TLS context from the current file of Vault's CA, which may be renewed."""
        try:
            context = ssl.create_default_context(cafile=None if self.ca is None else str(self.ca))
        except (OSError, ssl.SSLError) as error:
            raise StateError(f"vault_ca {self.ca} lacks readable certificates in PEM") from error
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        return context


def segment(text: str) -> str:
    """Return a name, percent-encoded, as one segment of a URL's path; for example `a/b` becomes `a%2Fb`."""
    return quote(text, safe="")


def mount(text: str) -> str:
    """Return a mount point as part of a path; slashes are kept, for example in `teams/mesh/pki`."""
    return quote(text.strip("/"), safe="/")


def _read(content: bytes) -> Answer | None:
    try:
        result = json.loads(content) if content.strip() else {}
    except (ValueError, RecursionError):
        return None
    return result if isinstance(result, dict) else None


def _refusal(status: int, result: Answer | None, path: str, hidden: tuple[str, ...]) -> str:
    if result is None:
        return (
            f"answered {status} at {path}, but not with a JSON object; check that this is the "
            "address of a Vault server"
        )
    errors = result.get("errors")
    text = "; ".join(map(str, errors)) if isinstance(errors, list) else ""
    words = _without(" ".join(text.split()), hidden)[:_SHOWN] or "without a reason"
    if 300 <= status < 400:
        return (
            f"answered {status}, a redirect, which is not followed; set vault_address to the "
            "address of the active server"
        )
    return f"answered {status} at {path}: {words}"


def _without(text: str, hidden: tuple[str, ...]) -> str:
    for item in hidden:
        text = text.replace(item, "[hidden]")
    return text


def _texts(body: Answer) -> tuple[str, ...]:
    """Return the secrets in the body of a login request, to be hidden in errors."""
    return tuple(
        item for name, item in body.items() if name in ("secret_id", "jwt") and isinstance(item, str)
    )
