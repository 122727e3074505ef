"""Keys, the certificate authority, service and proxy certificates, and the ledger of who was issued what.

The only user of `cryptography`. It will never know proxies' configuration, gRPC or policies, never read a
clock (time is an argument), and never put a private key's bytes into a log, an error or a repr.
"""
