"""The status of XMesh objects, which describe a mesh to tools of the Gateway API.

    mesh_object  an XMesh as a value, and the status that it should have
    writer       watches the XMesh objects, and writes the statuses that differ

XMesh is experimental, so its CRD is often missing; nothing is watched then. Meshwright writes only the status
of objects whose controllerName is that of Meshwright, and never creates an XMesh.
"""
