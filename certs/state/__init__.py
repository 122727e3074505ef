"""Files of the state directory: private to their owner, replaced atomically, and encrypted on request.

The state directory holds the private keys of the CA and of services, the ledger and the tokens. The files
must survive a crash at any moment, a full disk and other users of the machine.
- `files`, `links`: atomic private files, opened without following links of other users.
- `database`: SQLite files that stay readable, and take a revocation, on a full disk.
- `directory_marks`: marks of a directory whose mesh was moved to another place, or is being imported.
- `privacy`: checks for access of other users to the files.
- `sealing`, `sealed_state`: encryption of the private keys with a passphrase.
- `stored_pair`, `pair_files`: certificates with keys, kept across restarts, for example in
  `services/shop/cart/certificate.pem`.
- `json_fields`: fields of small JSON files, named in errors.
The package never decides what a certificate contains. Continue with `files`.
"""
