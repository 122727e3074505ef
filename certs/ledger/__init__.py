"""The ledger of proxy certificates: which were issued, used, revoked, and how far each proxy has come.

It never stores a private key.
"""
