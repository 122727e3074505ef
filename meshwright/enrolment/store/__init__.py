"""The store of join tokens: the contract, and SQLite.

It never stores the secret of a token, only its hash.
"""
