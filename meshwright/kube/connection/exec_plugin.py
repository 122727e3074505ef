"""Exec plug-ins: programs for credentials (client.authentication.k8s.io, ExecCredential)."""

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from meshwright.kube.connection.access import Plugin
from meshwright.kube.errors import ConfigError, Reason, shortened
from meshwright.processes.command import Command, run

PATIENCE: Final = 60.0
"""Maximum seconds for a plug-in."""

_LONGEST: Final = 1 << 20
"""Maximum bytes of a plug-in's output."""


@dataclass(frozen=True, slots=True)
class Credential:
    """The answer of a plug-in: a token, a certificate with its key, or both, and the time of expiry."""

    token: str = field(default="", repr=False)
    certificate: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)
    expires: datetime | None = None


async def ask(plugin: Plugin, patience: float = PATIENCE) -> Credential:
    """Run a plug-in. Raises ConfigError with the plug-in's error output, never with credentials.

    The plug-in has no standard input and no terminal, so it cannot ask a person.
    """
    try:
        ended = await run(_command(plugin), patience)
    except TimeoutError:
        raise _fault(plugin, f"did not finish within {patience:g} s") from None
    except (FileNotFoundError, NotADirectoryError):
        hint = f": {shortened(plugin.hint)}" if plugin.hint else ""
        raise _fault(plugin, f"does not exist{hint}") from None
    except OSError as error:
        raise _fault(plugin, f"cannot be run: {error.strerror or error}") from error
    if ended.status:
        last = ended.errors.decode("utf-8", "replace").strip().splitlines()[-1:]
        words = shortened(last[0]) if last else "without an error message"
        raise _fault(plugin, f"failed with exit status {ended.status}: {words}")
    return credential(plugin, ended.output)


def _command(plugin: Plugin) -> Command:
    """Return the command.

    One byte more than the limit is kept, which is enough to recognise a larger output.
    """
    asked = {"KUBERNETES_EXEC_INFO": json.dumps(_run_plugin(plugin))}
    return Command(
        (plugin.command, *plugin.arguments),
        environment={**os.environ, **dict(plugin.environment), **asked},
        most_bytes=_LONGEST + 1,
    )


def _run_plugin(plugin: Plugin) -> Mapping[str, Any]:
    spec: dict[str, Any] = {"interactive": False}
    if plugin.cluster is not None:
        spec["cluster"] = plugin.cluster
    return {"apiVersion": plugin.version, "kind": "ExecCredential", "spec": spec}


def credential(plugin: Plugin, output: bytes) -> Credential:
    """Parse the ExecCredential that an exec plug-in has printed; raise ConfigError."""
    try:
        document = json.loads(output) if len(output) <= _LONGEST else None
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise _fault(plugin, "did not print an ExecCredential: the output must be one JSON object")
    if document.get("kind") != "ExecCredential" or document.get("apiVersion") != plugin.version:
        gave = shortened(f"{document.get('kind')} of {document.get('apiVersion')}")
        raise _fault(plugin, f"printed {gave}: must be an ExecCredential of {plugin.version}")
    status = document.get("status")
    if not isinstance(status, dict):
        raise _fault(plugin, "printed an ExecCredential without status")
    token, certificate, key = (_text(plugin, status, item) for item in _GIVEN)
    if bool(certificate) != bool(key):
        raise _fault(plugin, "returned a certificate without a key, or a key without a certificate")
    if not token and not certificate:
        raise _fault(plugin, "returned neither a token nor a certificate")
    return Credential(token, certificate.encode(), key.encode(), _expires(plugin, status))


_GIVEN: Final = ("token", "clientCertificateData", "clientKeyData")


def _text(plugin: Plugin, status: Mapping[str, Any], name: str) -> str:
    value = status.get(name) or ""
    if not isinstance(value, str):
        raise _fault(plugin, f"returned a {name} that is not text")
    return value


def _expires(plugin: Plugin, status: Mapping[str, Any]) -> datetime | None:
    text = _text(plugin, status, "expirationTimestamp")
    if not text:
        return None
    with contextlib.suppress(ValueError):
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            return moment
    raise _fault(
        plugin,
        f"returned the expirationTimestamp {shortened(text)!r}: must have the form 2030-01-31T12:00:00Z",
    )


def _fault(plugin: Plugin, wrong: str) -> ConfigError:
    return ConfigError(f"exec plug-in {plugin.command} {wrong}", Reason.CREDENTIALS)
