"""The state of the authority as folders and files of a state directory, for one server.

    store               the store: `certs.roots.authority_store.AuthorityStore` with files. Start here.
    rotation_folders    the root rotation: three renames, recovered after a crash
    records             `issuer.json`, `authority.json`, `declared-roots.json`, `first-proxy`

The package never decides about a root rotation, only keeps its steps.
"""
