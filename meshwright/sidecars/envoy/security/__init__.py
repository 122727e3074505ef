"""TLS contexts and secrets (SDS), and the secrets acknowledged by proxies.

Keys are never logged.
"""
