"""The state of the authority in records that several servers share.

    store       the record `authority`: `certs.roots.authority_store.AuthorityStore` on records. Start here.
    fields      the fields of this record, in which private keys are encrypted
    data_key    the record `seal`, with the data key that encrypts private keys in all records
    evidence    signs in other records that there was a CA, if its record is missing

The package never decides about a root rotation, only keeps its steps.
"""
