"""What becomes of Open Service Mesh's objects here: found of each, and written anew where it must be.

    findings      one line of the report
    objects       any object, by the readers that the server has: there is no second list of what is supported
    mesh_config   a MeshConfig, field by field, and what says the same here
    namespaces    who gets a sidecar, there and here
    pods          pods and what makes them, by the injector
    together      what lint says of the objects together
    gateways      gateways that verify sidecars by Open Service Mesh's names
    installation  what of Open Service Mesh itself is still there
    moving        all of it together
    reading       manifests in files, objects of a cluster

All but `reading` are functions of values.
"""
