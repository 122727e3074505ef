"""The issuer of service certificates, and what keeps it able to sign.

It never signs: `certs.issuers` does.
"""
