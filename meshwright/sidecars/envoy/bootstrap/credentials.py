"""How Envoy proves who it is to its control plane, and how the control plane must prove itself.

The three files are read when Envoy starts, or over path-based SDS: then again after every move into the
directories that are watched, without a restart.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from meshwright.sidecars.envoy.bootstrap.json_messages import Message, packed

PROXY_SDS_FILE: Final = "sds-proxy.json"
CA_SDS_FILE: Final = "sds-ca.json"
_PROXY_NAME: Final = "proxy"
_CA_NAME: Final = "ca"
_TLS: Final = "envoy.extensions.transport_sockets.tls.v3"


@dataclass(frozen=True, slots=True)
class ProxyFiles:
    """Paths as Envoy sees them, and the name that the control plane's certificate must carry.

    `sds_directory` is where the files of `secrets` stand; None for files that are read once.
    """

    certificate: Path
    key: Path
    authority: Path
    server_name: str
    sds_directory: Path | None = None


def tls_context(files: ProxyFiles) -> Message:
    """Return the TLS context of the control plane's cluster: TLS 1.3, the proxy's certificate, one name."""
    versions = {"tlsMinimumProtocolVersion": "TLSv1_3", "tlsMaximumProtocolVersion": "TLSv1_3"}
    if files.sds_directory is None:
        who: Message = {
            "tlsCertificates": [_certificate(files)],
            "validationContext": _validation(files),
        }
    else:
        directory = files.sds_directory
        who = {
            "tlsCertificateSdsSecretConfigs": [_from_file(_PROXY_NAME, directory / PROXY_SDS_FILE)],
            "validationContextSdsSecretConfig": _from_file(_CA_NAME, directory / CA_SDS_FILE),
        }
    context = {"commonTlsContext": {"tlsParams": versions, **who}, "sni": files.server_name}
    return packed(f"{_TLS}.UpstreamTlsContext", context)


def secrets(files: ProxyFiles, watched: Path) -> dict[str, Message]:
    """Return the two secrets by the name of their file in `sds_directory`; `watched` is where files move."""
    again = {"watchedDirectory": {"path": str(watched)}}
    proxy = {"name": _PROXY_NAME, "tlsCertificate": {**_certificate(files), **again}}
    authority = {"name": _CA_NAME, "validationContext": {**_validation(files), **again}}
    return {
        PROXY_SDS_FILE: packed(f"{_TLS}.Secret", proxy),
        CA_SDS_FILE: packed(f"{_TLS}.Secret", authority),
    }


def _certificate(files: ProxyFiles) -> Message:
    return {"certificateChain": _file(files.certificate), "privateKey": _file(files.key)}


def _validation(files: ProxyFiles) -> Message:
    """Return whom to believe, and what the control plane's certificate must be for."""
    name = {"sanType": "DNS", "matcher": {"exact": files.server_name}}
    return {"trustedCa": _file(files.authority), "matchTypedSubjectAltNames": [name]}


def _from_file(name: str, path: Path) -> Message:
    """Return where a secret is read: a file, and again after a move into its directory."""
    source = {"path": str(path), "watchedDirectory": {"path": str(path.parent)}}
    return {"name": name, "sdsConfig": {"pathConfigSource": source, "resourceApiVersion": "V3"}}


def _file(path: Path) -> Message:
    return {"filename": str(path)}
