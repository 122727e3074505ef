"""Credentials of a gRPC channel. Only this module gives certificates and keys of a client to gRPC."""

import grpc

from meshwright.tls.contents import TlsContents


def channel_credentials(contents: TlsContents) -> grpc.ChannelCredentials:
    """Return the credentials of a gRPC channel; the contents are known to be usable."""
    return grpc.ssl_channel_credentials(contents.ca, contents.key, contents.certificate)
