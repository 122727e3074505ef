"""TLS contexts and secrets (SDS), and the secrets that proxies have acknowledged.

Keys are never logged.
"""
