"""Issuer of service certificates, kept able to sign.

It never signs: `certs.issuers` does.
"""
