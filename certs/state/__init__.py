"""Files of the state directory: private to their owner, replaced atomically, and encrypted on request.

The state directory holds the private keys of the CA and of services, the ledger and the tokens. It must
survive a crash at any moment, a full disk and other users of the machine.
- `files`, `links`: atomic private files, opened without following links of other users.
- `database`: SQLite files that can still be read, and take a revocation, on a full disk.
- `privacy`: checks that no other user can access the files.
- `sealing`, `sealed_state`: encryption of the private keys with a passphrase.
- `stored_pair`, `pair_files`: certificates with their keys, kept across restarts.
The package never decides what is in a certificate. Continue with `files`.
"""
