"""Credentials of Envoy for its control plane, and the check of the control plane's certificate.

The three files are read at Envoy's start, or by path-based SDS: then again after every move into the watched
directories, without a restart.
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
    """Paths as Envoy sees them, and the DNS name in the control plane's certificate.

    `sds_directory` has the files from `secrets`; None: files are read once.
    """

    certificate: Path
    key: Path
    authority: Path
    server_name: str
    sds_directory: Path | None = None


def tls_context(files: ProxyFiles) -> Message:
    """Return the TLS context for the control plane: TLS 1.3, the proxy's certificate, one accepted name."""
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
    """Return the secrets for the proxy and the CA, by file name in `sds_directory`.

    `watched` is the directory in which a move makes Envoy read them again.
    """
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
    """Return the trusted CA certificates and the accepted name of the control plane."""
    name = {"sanType": "DNS", "matcher": {"exact": files.server_name}}
    return {"trustedCa": _file(files.authority), "matchTypedSubjectAltNames": [name]}


def _from_file(name: str, path: Path) -> Message:
    """Return the source of a secret: a file, read again after each move into its directory."""
    source = {"path": str(path), "watchedDirectory": {"path": str(path.parent)}}
    return {"name": name, "sdsConfig": {"pathConfigSource": source, "resourceApiVersion": "V3"}}


def _file(path: Path) -> Message:
    return {"filename": str(path)}
