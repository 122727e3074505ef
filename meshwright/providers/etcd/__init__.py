"""Objects in etcd as a source: each key has one manifest, which `meshwright apply` writes.

`names` has the names of the keys, `manifest` reads one value, `book` has the resulting objects, and `source`
follows the keys. `last_objects` is the file for restarts. A value that cannot be used is a problem that names
its key, and never harms the others. The source never writes to etcd.
"""
