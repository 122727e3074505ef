"""Care for the issuer of service certificates: its settings, its credentials, and changes of its roots.

The package itself never signs a certificate: `certs.issuers` does.
"""
