"""Showing the proxy's own certificate by our own TLS, without ever asking anybody for anything."""

import ssl
from pathlib import Path
from typing import NoReturn

from meshwright.sidecars.layout import CHAIN_FILE, KEY_FILE


def show_own(context: ssl.SSLContext, directory: Path) -> None:
    """Have a context show the certificate of a directory; raise OSError where that cannot be.

    OpenSSL asks for the pass phrase of a key that is encrypted, at whatever terminal there is, and waits.
    """
    key = directory / KEY_FILE

    def refused() -> NoReturn:
        raise ssl.SSLError(1, f"{key} is encrypted: it must be PEM without a pass phrase")

    context.load_cert_chain(directory / CHAIN_FILE, key, password=refused)
