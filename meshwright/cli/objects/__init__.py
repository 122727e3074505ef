"""Objects in etcd for `meshwright apply`, `get` and `delete`, judged as by the admission webhook.

    settings    the etcd of a mesh, from the environment or the server's config file
    inputs      manifests in files, one document each
    judgement   the verdict on one document, before it is written
    kinds       kinds as people type them, and as kubectl prints them
    effects     problems that a change adds to the mesh
    printing    objects as tables, YAML and JSON
    store       the objects in etcd: listed, written and deleted by compared changes

The package never changes an object without a comparison, and never reads a server's state.
"""
