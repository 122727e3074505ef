"""How Envoy proves who it is to its control plane, and how the control plane must prove itself.

The three files are read when Envoy starts, or over path-based SDS: then again after every move into the
directories that are watched, without a restart. Built with envoy-data-plane, which is imported where it is
used: it takes its time, and warns while it does.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from envoy_data_plane.envoy.config.core import v3 as core_v3
    from envoy_data_plane.envoy.extensions.transport_sockets.tls import v3 as tls_v3
    from envoy_data_plane.google import protobuf

PROXY_SDS_FILE: Final = "sds-proxy.json"
CA_SDS_FILE: Final = "sds-ca.json"
_PROXY_NAME: Final = "proxy"
_CA_NAME: Final = "ca"


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


def tls_context(files: ProxyFiles) -> "protobuf.Any":
    """Return the TLS context of the control plane's cluster: TLS 1.3, the proxy's certificate, one name."""
    from envoy_data_plane.envoy.extensions.transport_sockets.tls import v3 as tls_v3
    from envoy_data_plane.google import protobuf

    versions = tls_v3.TlsParameters(
        tls_minimum_protocol_version=tls_v3.TlsParametersTlsProtocol.TLSv1_3,
        tls_maximum_protocol_version=tls_v3.TlsParametersTlsProtocol.TLSv1_3,
    )
    if files.sds_directory is None:
        context = tls_v3.CommonTlsContext(
            tls_params=versions,
            tls_certificates=[
                tls_v3.TlsCertificate(
                    certificate_chain=_file(files.certificate),
                    private_key=_file(files.key),
                )
            ],
            validation_context=tls_v3.CertificateValidationContext(
                trusted_ca=_file(files.authority),
                match_typed_subject_alt_names=[_expected_name(files)],
            ),
        )
    else:
        directory = files.sds_directory
        context = tls_v3.CommonTlsContext(
            tls_params=versions,
            tls_certificate_sds_secret_configs=[_from_file(_PROXY_NAME, directory / PROXY_SDS_FILE)],
            validation_context_sds_secret_config=_from_file(_CA_NAME, directory / CA_SDS_FILE),
        )
    return protobuf.Any.pack(tls_v3.UpstreamTlsContext(common_tls_context=context, sni=files.server_name))


def _from_file(name: str, path: Path) -> "tls_v3.SdsSecretConfig":
    """Return where a secret is read: a file, and again after a move into its directory."""
    from envoy_data_plane.envoy.config.core import v3 as core_v3
    from envoy_data_plane.envoy.extensions.transport_sockets.tls import v3 as tls_v3

    source = core_v3.PathConfigSource(
        path=str(path), watched_directory=core_v3.WatchedDirectory(path=str(path.parent))
    )
    return tls_v3.SdsSecretConfig(
        name=name,
        sds_config=core_v3.ConfigSource(
            path_config_source=source, resource_api_version=core_v3.ApiVersion.V3
        ),
    )


def _file(path: Path) -> "core_v3.DataSource":
    from envoy_data_plane.envoy.config.core import v3 as core_v3

    return core_v3.DataSource(filename=str(path))


def _expected_name(files: ProxyFiles) -> "tls_v3.SubjectAltNameMatcher":
    """Return what the control plane's certificate must be for."""
    from envoy_data_plane.envoy.extensions.transport_sockets.tls import v3 as tls_v3
    from envoy_data_plane.envoy.type.matcher import v3 as matcher_v3

    return tls_v3.SubjectAltNameMatcher(
        san_type=tls_v3.SubjectAltNameMatcherSanType.DNS,
        matcher=matcher_v3.StringMatcher(exact=files.server_name),
    )


def secrets(files: ProxyFiles, watched: Path) -> dict[str, object]:
    """Return the two secrets by the name of their file in `sds_directory`; `watched` is where files move."""
    from envoy_data_plane.envoy.config.core import v3 as core_v3
    from envoy_data_plane.envoy.extensions.transport_sockets.tls import v3 as tls_v3
    from envoy_data_plane.google import protobuf

    directory = core_v3.WatchedDirectory(path=str(watched))
    certificate = tls_v3.TlsCertificate(
        certificate_chain=_file(files.certificate),
        private_key=_file(files.key),
        watched_directory=directory,
    )
    context = tls_v3.CertificateValidationContext(
        trusted_ca=_file(files.authority),
        watched_directory=directory,
        match_typed_subject_alt_names=[_expected_name(files)],
    )
    return {
        PROXY_SDS_FILE: protobuf.Any.pack(
            tls_v3.Secret(name=_PROXY_NAME, tls_certificate=certificate)
        ).to_dict(),
        CA_SDS_FILE: protobuf.Any.pack(tls_v3.Secret(name=_CA_NAME, validation_context=context)).to_dict(),
    }
