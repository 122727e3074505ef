"""Issuer of service certificates, kept able to sign.

Signing itself is in `certs.issuers`.
"""
