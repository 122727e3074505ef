"""The store of join tokens: the contract, SQLite, and records that several servers share.

- `contract`: the interface.
- `sqlite`: join tokens in a file of the state directory.
- `records`: join tokens in shared records, with `token_fields` (the form of the records), `known_tokens`
  (the tokens in memory) and `lost_tokens` (what a store has lost).
The package never stores the secret of a token, only a hash.
"""
