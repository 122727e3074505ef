"""Loading of a certificate and a key from memory, because the `ssl` module reads only files."""

import os
import ssl
import tempfile
from typing import Final

_IN_MEMORY: Final = hasattr(os, "memfd_create")


def load_key_pair(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Load a certificate chain and the private key, both PEM, into a context.

    Raises ssl.SSLError for unusable contents, and ValueError for a key with a password.
    """
    both = key.rstrip() + b"\n" + certificate
    if not _IN_MEMORY:
        with tempfile.NamedTemporaryFile() as file:  # with mode 0600
            file.write(both)
            file.flush()
            context.load_cert_chain(file.name, password=_no_password)
        return
    # An anonymous file in memory: no name that others could open, and no writable disk needed.
    descriptor = os.memfd_create("tls")
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(both)
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", password=_no_password)
    finally:
        os.close(descriptor)


def _no_password() -> bytes:
    """Refuse a private key with a password; otherwise OpenSSL would prompt on the terminal."""
    raise ValueError("the key has a password")
