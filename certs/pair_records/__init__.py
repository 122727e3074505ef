"""Service certificates with keys in records that several servers share: one record for each service identity.

- `store`: the store, which implements `certs.state.stored_pair.Pairs`. Start here.
- `known_pairs`: the records in the memory of one server.
- `fields`: the fields of a record, in which the private key is encrypted.
- `lost_pairs`: what a store has lost of a record.
The package never decides whether a certificate can be used.
"""
