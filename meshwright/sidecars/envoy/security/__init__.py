"""TLS contexts and secrets (SDS), and which secrets proxies have acknowledged.

It never logs a key.
"""
