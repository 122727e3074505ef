"""Extensions that every certificate has which is not a CA certificate."""

from typing import Final

from cryptography import x509

LEAF: Final = (
    (True, x509.BasicConstraints(ca=False, path_length=None)),
    (
        True,
        x509.KeyUsage(
            digital_signature=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=False,
            crl_sign=False,
            encipher_only=False,
            decipher_only=False,
        ),
    ),
)
"""Its first extensions: whether they are critical, and their values."""
