"""The status of objects: conditions, and the status fields of the kinds of Open Service Mesh.

    conditions  conditions as values: Accepted, Conflicted and Programmed
    writer      writes conditions
    osm_words   the status fields of IngressBackend and MeshRootCertificate
    osm_writer  writes these fields

This package never writes Events.
"""
