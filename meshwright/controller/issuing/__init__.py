"""Issuer of service certificates, kept able to sign.

The package never signs: `certs.issuers` does.
"""
