"""The store of join tokens: the contract, and SQLite.

The package never stores the secret of a token, only a hash.
"""
