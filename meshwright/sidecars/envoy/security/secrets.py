"""Secrets (SDS): service certificates, CA certificates for peers, and Secrets of gateways."""

from catalog.policy.values.edge import EdgeAuthorities
from certs.keys.material import ServiceCertificate
from meshwright.mesh.gateway.secrets import TlsSecret
from meshwright.mesh.names import TrustDomain
from meshwright.mesh.values.private_key import PrivateKey
from meshwright.sidecars.envoy import names
from protos.envoy.config.core.v3 import base_pb2
from protos.envoy.extensions.transport_sockets.tls.v3 import common_pb2, secret_pb2
from xds.protocol.resources.resource import Resource, encode


def service_certificate(certificate: ServiceCertificate) -> Resource:
    """Return the certificate chain and private key of a service identity."""
    return _shown(names.SERVICE_CERTIFICATE, certificate.chain_pem, certificate.key)


def edge_certificate(secret: TlsSecret) -> Resource:
    """Return the certificate chain and private key of a gateway's Secret."""
    return _shown(names.edge_certificate(secret.key), secret.chain_pem, secret.private_key)


def _shown(name: str, chain_pem: bytes, key: PrivateKey) -> Resource:
    return encode(
        secret_pb2.Secret(
            name=name,
            tls_certificate=common_pb2.TlsCertificate(
                certificate_chain=base_pb2.DataSource(inline_bytes=chain_pem),
                private_key=base_pb2.DataSource(inline_bytes=key.reveal()),
            ),
        )
    )


def trust_root(trust_domain: TrustDomain, trust_bundle: bytes) -> Resource:
    """Return the CA certificates of a trust domain.

    The expected identities are part of each TLS context instead, so one bundle serves all contexts.
    """
    return _trusted(names.trust_root(trust_domain), trust_bundle)


def client_authorities(found: EdgeAuthorities) -> Resource:
    """Return the CA certificates for the clients of a gateway's port; the mode is part of the TLS context."""
    return _trusted(names.client_authorities(found.gateway, found.port), found.pem.encode())


def _trusted(name: str, pem: bytes) -> Resource:
    return encode(
        secret_pb2.Secret(
            name=name,
            validation_context=common_pb2.CertificateValidationContext(
                trusted_ca=base_pb2.DataSource(inline_bytes=pem)
            ),
        )
    )
