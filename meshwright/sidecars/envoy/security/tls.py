"""TLS contexts: mutual TLS with SPIFFE IDs inside of the mesh, and TLS to hosts outside.

Within the mesh ALPN is not set. Envoy's HTTP codec then detects the HTTP/2 preface itself, so one inbound
port accepts HTTP/1.1 and gRPC; an own ALPN value would be treated as HTTP/1.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from google.protobuf.wrappers_pb2 import BoolValue

from catalog.policy.values.destinations import BackendTls, ServiceDestination, TlsOrigination
from catalog.policy.values.edge import EdgePort, EdgeTls
from catalog.policy.values.inbound import EveryoneInTheMesh, InboundPort, admitted
from catalog.policy.values.route_actions import HttpVersion
from catalog.policy.values.terms import MeshTerms, TlsRange
from meshwright.mesh.config import TlsVersion
from meshwright.mesh.gateway.backend_tls import AltName, AltNameType
from meshwright.mesh.gateway.gateways import ValidationMode
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import TrustDomain
from meshwright.mesh.policies.callers import AuthenticatedName
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.sidecars.envoy import names
from meshwright.sidecars.envoy.common_messages import OVER_ADS, packed, reference
from protos.envoy.config.core.v3 import base_pb2
from protos.envoy.extensions.transport_sockets.tls.v3 import common_pb2, secret_pb2, tls_pb2
from protos.envoy.type.matcher.v3 import regex_pb2, string_pb2
from xds.protocol.resources.resource import SECRET, Reference

ALIKE: Final = 16
"""Number of cached common TLS contexts; a mesh has another one only after a change of settings."""

_TLS: Final = "envoy.transport_sockets.tls"
_YES: Final = BoolValue(value=True)
_NO: Final = BoolValue(value=False)
_OUTSIDE: Final = TlsRange(TlsVersion.V1_2, TlsVersion.V1_3)
"""TLS versions with clients and hosts outside of the mesh."""
SYSTEM_ROOTS: Final = "/etc/ssl/certs/ca-certificates.crt"
"""File with the CA certificates of the system, in Debian and its relatives, on which Envoy's images stand."""
_ALPN: Final = {HttpVersion.HTTP1: "http/1.1", HttpVersion.HTTP2: "h2"}
_Matcher = common_pb2.SubjectAltNameMatcher


def downstream(
    terms: MeshTerms, port: InboundPort, caller: ServiceIdentity | None = None
) -> base_pb2.TransportSocket:
    """Return the TLS of an inbound port: callers must present a certificate with a SPIFFE ID of the mesh.

    On a TCP port with rules, only admitted SPIFFE IDs pass the handshake, and in a caller's own chain only
    the ID of `caller`. Envoy's network RBAC filter would not be enough, because it decides on the caller's
    first byte, and by then a server may have answered, if the server speaks first. On HTTP ports any ID of
    the trust domain passes, and each request is checked. Names from rules pass too.
    """
    if caller is not None:
        accepted = _exactly(terms.trust_domain, (caller,))
    elif port.protocol.is_http or isinstance(port.access, EveryoneInTheMesh):
        accepted = _any_of(terms.trust_domain)
    else:
        accepted = _exactly(terms.trust_domain, admitted(port.access, ServiceIdentity))
    if caller is None:
        names = dict.fromkeys(
            authenticated_name.name for authenticated_name in admitted(port.access, AuthenticatedName)
        )
        # A caller with such a name is from outside of the mesh, and never gets a chain of its own.
        accepted += map(_name, names)
    context = tls_pb2.DownstreamTlsContext(
        common_tls_context=_common(terms, accepted), require_client_certificate=_YES
    )
    return base_pb2.TransportSocket(name=_TLS, typed_config=packed(context))


def without_proof(terms: MeshTerms, *, requested: bool) -> base_pb2.TransportSocket:
    """Return TLS for callers without a certificate.

    With `requested` a certificate of the mesh is requested and verified.

    If none is requested, none is presented, because an unverified name is worthless.
    """
    common = _common(terms, ())
    if not requested:
        common.ClearField("combined_validation_context")
    # Set explicitly although it is the default, because Envoy logs a warning otherwise.
    context = tls_pb2.DownstreamTlsContext(common_tls_context=common, require_client_certificate=_NO)
    return base_pb2.TransportSocket(name=_TLS, typed_config=packed(context))


def upstream(terms: MeshTerms, destination: ServiceDestination) -> base_pb2.TransportSocket:
    """Return the TLS to a destination, which must present one of the expected identities.

    On a TCP port the server name also has the caller's label, by which the server selects a filter chain.
    """
    name = destination.server_name
    if not destination.is_http and destination.caller is not None:
        name = f"{name}.{names.caller(destination.caller, terms.trust_domain)}"
    context = tls_pb2.UpstreamTlsContext(
        common_tls_context=_common(terms, _exactly(terms.trust_domain, destination.identities)),
        sni=name,
    )
    return base_pb2.TransportSocket(name=_TLS, typed_config=packed(context))


def edge(port: EdgePort, tls: EdgeTls, *, requests: bool) -> base_pb2.TransportSocket:
    """Return the TLS of a gateway, which shows one of its Secrets to its clients.

    Clients may be anybody unless the port validates them. The TLS versions are 1.2 and 1.3, independent of
    the mesh's own setting, with Envoy's default ciphers. With `requests` clients may choose HTTP/2 by ALPN,
    which browsers require.
    """
    shown = [
        secret_pb2.SdsSecretConfig(name=names.edge_certificate(secret), sds_config=OVER_ADS)
        for secret in tls.certificates
    ]
    common = tls_pb2.CommonTlsContext(
        tls_params=_parameters(_OUTSIDE),
        tls_certificate_sds_secret_configs=shown,
        alpn_protocols=["h2", "http/1.1"] if requests else [],
    )
    if tls.clients is not None:
        common.combined_validation_context.CopyFrom(_clients(port, tls.clients))
    # Set explicitly although it can be the default, because Envoy logs a warning otherwise.
    required = _YES if tls.clients is ValidationMode.VALID_ONLY else _NO
    context = tls_pb2.DownstreamTlsContext(common_tls_context=common, require_client_certificate=required)
    return base_pb2.TransportSocket(name=_TLS, typed_config=packed(context))


def _clients(
    port: EdgePort, mode: ValidationMode
) -> tls_pb2.CommonTlsContext.CombinedCertificateValidationContext:
    """Return the validation of clients; with the insecure fallback it admits every certificate."""
    verification = common_pb2.CertificateValidationContext.TrustChainVerification
    is_insecure = mode is ValidationMode.INSECURE_FALLBACK
    return tls_pb2.CommonTlsContext.CombinedCertificateValidationContext(
        default_validation_context=common_pb2.CertificateValidationContext(
            trust_chain_verification=verification.ACCEPT_UNTRUSTED
            if is_insecure
            else verification.VERIFY_TRUST_CHAIN
        ),
        validation_context_sds_secret_config=secret_pb2.SdsSecretConfig(
            name=names.client_authorities(port.gateway, port.port), sds_config=OVER_ADS
        ),
    )


def origination(wanted: TlsOrigination) -> base_pb2.TransportSocket:
    """Return the TLS to a host outside of the mesh, which must present a certificate for the given name.

    The proxy presents no certificate, because hosts outside need not know the mesh. The TLS versions are 1.2
    and 1.3, independent of the mesh's own setting.
    """
    name = _dns(string_pb2.StringMatcher(exact=wanted.server_name))
    roots = base_pb2.DataSource(inline_string=wanted.roots)
    context = tls_pb2.UpstreamTlsContext(
        common_tls_context=tls_pb2.CommonTlsContext(
            tls_params=_parameters(_OUTSIDE),
            validation_context=common_pb2.CertificateValidationContext(
                trusted_ca=roots, match_typed_subject_alt_names=[name]
            ),
        ),
        sni=wanted.server_name,
    )
    return base_pb2.TransportSocket(name=_TLS, typed_config=packed(context))


def to_backend(wanted: BackendTls, version: HttpVersion | None) -> base_pb2.TransportSocket:
    """Return the TLS of a gateway to an application, as a BackendTLSPolicy demands; None for connections.

    The gateway presents its client certificate, if it has one. The version of HTTP is requested by ALPN,
    because many servers speak HTTP/2 only after such a request. The TLS versions are 1.2 and 1.3, independent
    of the mesh's own setting.
    """
    matchers = [_alt_name(name) for name in wanted.names]
    roots = base_pb2.DataSource(filename=SYSTEM_ROOTS)
    if wanted.roots is not None:
        roots = base_pb2.DataSource(inline_string=wanted.roots)
    context = tls_pb2.UpstreamTlsContext(
        common_tls_context=tls_pb2.CommonTlsContext(
            tls_params=_parameters(_OUTSIDE),
            validation_context=common_pb2.CertificateValidationContext(
                trusted_ca=roots, match_typed_subject_alt_names=matchers
            ),
            alpn_protocols=[] if version is None else [_ALPN[version]],
        ),
        sni=wanted.server_name,
    )
    present(context, wanted.certificate)
    return base_pb2.TransportSocket(name=_TLS, typed_config=packed(context))


def present(context: tls_pb2.UpstreamTlsContext, certificate: PolicyKey | None) -> None:
    """Let a gateway present the client certificate of a Secret to a server that asks for one."""
    if certificate is not None:
        shown = secret_pb2.SdsSecretConfig(name=names.edge_certificate(certificate), sds_config=OVER_ADS)
        context.common_tls_context.tls_certificate_sds_secret_configs.append(shown)


def references_of_backend(wanted: BackendTls | None) -> frozenset[Reference]:
    """Return the secret for the TLS of a gateway to an application, if there is one."""
    if wanted is None or wanted.certificate is None:
        return frozenset()
    return frozenset({reference(SECRET, names.edge_certificate(wanted.certificate))})


def references(terms: MeshTerms) -> frozenset[Reference]:
    """Return the secrets for every TLS context of a proxy."""
    return frozenset(
        {
            reference(SECRET, names.SERVICE_CERTIFICATE),
            reference(SECRET, names.trust_root(terms.trust_domain)),
        }
    )


def _common(terms: MeshTerms, accepted: Iterable[_Matcher]) -> tls_pb2.CommonTlsContext:
    context = tls_pb2.CommonTlsContext()
    context.CopyFrom(_without_identities(terms))
    validation = context.combined_validation_context.default_validation_context
    validation.match_typed_subject_alt_names.extend(accepted)
    return context


@lru_cache(ALIKE)
def _without_identities(terms: MeshTerms) -> tls_pb2.CommonTlsContext:
    """Return the common part of the mesh's TLS contexts, to be copied; accepted identities are missing."""
    certificate = secret_pb2.SdsSecretConfig(name=names.SERVICE_CERTIFICATE, sds_config=OVER_ADS)
    root = secret_pb2.SdsSecretConfig(name=names.trust_root(terms.trust_domain), sds_config=OVER_ADS)
    return tls_pb2.CommonTlsContext(
        tls_params=_parameters(terms.tls),
        tls_certificate_sds_secret_configs=[certificate],
        combined_validation_context=tls_pb2.CommonTlsContext.CombinedCertificateValidationContext(
            default_validation_context=common_pb2.CertificateValidationContext(),
            validation_context_sds_secret_config=root,
        ),
    )


def _parameters(tls: TlsRange) -> common_pb2.TlsParameters:
    # Always set both bounds: without a maximum Envoy as a client offers at most 1.2.
    return common_pb2.TlsParameters(
        tls_minimum_protocol_version=_version(tls.minimum),
        tls_maximum_protocol_version=_version(tls.maximum),
        cipher_suites=tls.cipher_suites,
        ecdh_curves=tls.ecdh_curves,
    )


def _version(version: TlsVersion) -> common_pb2.TlsParameters.TlsProtocol:
    match version:
        case TlsVersion.V1_2:
            return common_pb2.TlsParameters.TlsProtocol.TLSv1_2
        case TlsVersion.V1_3:
            return common_pb2.TlsParameters.TlsProtocol.TLSv1_3


def _any_of(trust_domain: TrustDomain) -> list[_Matcher]:
    return [_uri(string_pb2.StringMatcher(prefix=f"spiffe://{trust_domain}/"))]


def _exactly(trust_domain: TrustDomain, identities: Iterable[ServiceIdentity]) -> list[_Matcher]:
    """Match these SPIFFE IDs.

    Without any, match an impossible ID: an empty list would accept every certificate.
    """
    accepted = sorted(identity.spiffe_id(trust_domain) for identity in set(identities))
    return [_uri(string_pb2.StringMatcher(exact=item)) for item in accepted or (f"spiffe://{trust_domain}/",)]


def _alt_name(wanted: AltName) -> _Matcher:
    """Match a name exactly, or names of one more label for a name such as `*.shop.example`."""
    if wanted.type is AltNameType.URI:
        return _uri(string_pb2.StringMatcher(exact=wanted.name))
    if not wanted.name.startswith("*."):
        # Envoy accepts a certificate for `*.shop.example` too, as clients do.
        return _dns(string_pb2.StringMatcher(exact=wanted.name))
    label = rf"(?i)[^.]+{re.escape(wanted.name[1:])}"
    return _dns(string_pb2.StringMatcher(safe_regex=regex_pb2.RegexMatcher(regex=label)))


def _name(name: str) -> _Matcher:
    matcher = string_pb2.StringMatcher(exact=name)
    return _uri(matcher) if AuthenticatedName(name).is_uri else _dns(matcher)


def _dns(matcher: string_pb2.StringMatcher) -> _Matcher:
    return _Matcher(san_type=_Matcher.SanType.DNS, matcher=matcher)


def _uri(matcher: string_pb2.StringMatcher) -> _Matcher:
    return _Matcher(san_type=_Matcher.SanType.URI, matcher=matcher)
