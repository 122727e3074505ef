"""`meshwright migrate`: the effect of another mesh's objects in Meshwright, and new manifests.

    findings      one line of the report
    objects       any object, read by the readers of the server
    mesh_config   a MeshConfig, field by field, and Meshwright's equivalents
    namespaces    the namespaces whose Pods get a sidecar, in both meshes
    pods          Pods and their controllers, patched by the injector
    cross_object  problems between objects, found by lint
    gateways      gateways that verify sidecars by Open Service Mesh's names
    installation  the parts of Open Service Mesh that are still installed
    migration     all of the above together
    gateway_api   `migrate smi`: routes of the Gateway API for TrafficSplits
    inputs        manifests in files, objects of a cluster

All modules except `inputs` are functions of values. The package never changes a cluster.
"""
