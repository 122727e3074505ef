"""Parser of kubeconfig files, merged as in kubectl.

Of several files the first with a name defines the name, and the first with a current-context selects the
context. Paths are relative to their file. If inline data and a file are both given, the data wins.
"""

import base64
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

import yaml

from meshwright.kube.connection.access import Access, Plugin, Server, User
from meshwright.kube.connection.proxies import PROXY_RULE, is_url
from meshwright.kube.connection.stanza import Stanza
from meshwright.kube.errors import ConfigError, shortened

EXEC_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
"""Supported versions of exec plug-ins."""

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read(file: Path) -> Stanza:
    """Parse a kubeconfig; raise ConfigError."""
    try:
        document = yaml.load(file.read_bytes(), Loader=_LOADER)  # noqa: S506 - a safe one
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror or error}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: an invalid date
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}: " if mark is not None else ""
        # The parser's messages describe the fault. Other errors quote the text, which may be a key.
        of_parser = isinstance(error, yaml.scanner.ScannerError | yaml.parser.ParserError)
        fault = shortened(str(getattr(error, "problem", None))) if of_parser else type(error).__name__
        raise ConfigError(f"{file}: {line}must be valid YAML: {fault}") from None
    if not isinstance(document, dict):
        raise ConfigError(f"{file}: must be a kubeconfig: a mapping with clusters, contexts and users")
    return Stanza(file, "", document)


def access(files: Sequence[Stanza], context: str = "") -> Access:
    """Return a context of merged files, by default the current one; raise ConfigError."""
    shown = ", ".join(str(file.file) for file in files)
    current = context or next(filter(None, (file.text("current-context") for file in files)), "")
    contexts = _named(files, "contexts", "context")
    if not current:
        has = f"the contexts are: {_listed(contexts)}" if contexts else "the file lacks contexts"
        raise ConfigError(f"{shown}: current-context is missing: name a context with --context; {has}")
    if current not in contexts:
        raise ConfigError(
            f"{shown}: context {current!r} does not exist; the contexts are: {_listed(contexts)}"
        )
    chosen = contexts[current]
    server = _server(
        _of(chosen, "cluster", _named(files, "clusters", "cluster"), shown), chosen.text("cluster")
    )
    if not chosen.text("user"):
        return Access(server, User())
    return Access(server, _user(_of(chosen, "user", _named(files, "users", "user"), shown), server))


def _named(files: Iterable[Stanza], plural: str, single: str) -> dict[str, Stanza]:
    stanzas: dict[str, Stanza] = {}
    for file in files:
        for stanza in file.parts(plural):
            name = stanza.text("name")
            if not name:
                raise stanza.fault("name", "is missing")
            part = stanza.part(single) or Stanza(file.file, "", {})
            stanzas.setdefault(name, Stanza(file.file, f"{plural}[{name}].{single}.", part.mapping))
    return stanzas


def _of(context: Stanza, single: str, stanzas: Mapping[str, Stanza], shown: str) -> Stanza:
    name = context.text(single)
    if not name:
        raise context.fault(single, "is missing")
    if name not in stanzas:
        raise context.fault(
            single, f"is {name!r}, which {shown} does not define; defined: {_listed(stanzas)}"
        )
    return stanzas[name]


def _server(stanza: Stanza, name: str) -> Server:
    url = stanza.text("server").rstrip("/")
    if not is_url(url):
        raise stanza.fault("server", "must be a URL, for example https://10.0.0.1:6443")
    if "@" in urlsplit(url).netloc:
        raise stanza.fault(
            "server", "must not contain credentials, because messages show the URL: put them into `users`"
        )
    proxy = stanza.text("proxy-url")
    if proxy and not is_url(proxy):
        raise stanza.fault("proxy-url", PROXY_RULE)
    ca, insecure = stanza.material("certificate-authority"), stanza.flag("insecure-skip-tls-verify")
    if ca and insecure:
        raise stanza.fault(
            "insecure-skip-tls-verify",
            "must not be true together with a certificate-authority: remove one of the two",
        )
    return Server(name, url, ca, insecure, stanza.text("tls-server-name"), proxy)


def _user(stanza: Stanza, server: Server) -> User:
    if (provider := stanza.part("auth-provider")) is not None:
        raise stanza.fault(
            "auth-provider",
            f"({provider.text('name')}) was removed from Kubernetes; use an exec plug-in such as kubelogin",
        )
    certificate, key = stanza.material("client-certificate"), stanza.material("client-key")
    if bool(certificate) != bool(key):
        missing = "client-key" if certificate else "client-certificate"
        raise stanza.fault(missing, "is missing: a client certificate and its key must be given together")
    name = stanza.text("username")
    plugin = stanza.part("exec")
    return User(
        token=stanza.text("token"),
        token_file=stanza.path("tokenFile"),
        basic=(name, stanza.text("password")) if name else None,
        certificate=certificate,
        key=key,
        plugin=None if plugin is None else _plugin(plugin, server),
        acting_as=tuple(_acting_as(stanza)),
    )


def _plugin(stanza: Stanza, server: Server) -> Plugin:
    version, command = stanza.text("apiVersion"), stanza.text("command")
    if version not in EXEC_VERSIONS:
        raise stanza.fault("apiVersion", f"is {version or 'missing'}: must be {' or '.join(EXEC_VERSIONS)}")
    if not command:
        raise stanza.fault("command", "is missing")
    mode = stanza.text("interactiveMode") or "IfAvailable"
    if mode == "Always":
        raise stanza.fault(
            "interactiveMode",
            "is Always, but Meshwright cannot answer questions of a plug-in: log in before, or "
            "use a plug-in without questions",
        )
    if mode not in ("Never", "IfAvailable"):
        raise stanza.fault("interactiveMode", f"is {mode!r}: must be Never or IfAvailable")
    return Plugin(
        version=version,
        # As in a shell: a bare name is searched in $PATH, and other paths are relative to the file's folder.
        command=str(stanza.path("command")) if "/" in command else command,
        arguments=stanza.texts("args"),
        environment=tuple((part.text("name"), part.text("value")) for part in stanza.parts("env")),
        cluster=_cluster(server) if stanza.flag("provideClusterInfo") else None,
        hint=stanza.text("installHint"),
    )


def _cluster(server: Server) -> Mapping[str, Any]:
    """Return the description of the API server that an exec plug-in receives (`cluster`)."""
    fields: dict[str, Any] = {"server": server.url, "config": None}
    if server.server_name:
        fields["tls-server-name"] = server.server_name
    if server.insecure:
        fields["insecure-skip-tls-verify"] = True
    if server.proxy:
        fields["proxy-url"] = server.proxy
    if server.ca:
        ca = server.ca.read_bytes() if isinstance(server.ca, Path) else server.ca
        fields["certificate-authority-data"] = base64.b64encode(ca).decode("ascii")
    return fields


def _acting_as(stanza: Stanza) -> Iterable[tuple[str, str]]:
    """Yield the impersonation headers; without them requests would have more permissions than intended."""
    if name := stanza.text("as"):
        yield "Impersonate-User", name
    if uid := stanza.text("as-uid"):
        yield "Impersonate-Uid", uid
    for group in stanza.texts("as-groups"):
        yield "Impersonate-Group", group
    extra = stanza.part("as-user-extra")
    for name in extra.mapping if extra is not None else ():
        for text in extra.texts(name) if extra is not None else ():
            yield f"Impersonate-Extra-{quote(name.lower(), safe='')}", text


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"
