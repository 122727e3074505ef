"""Parts that any long-running process needs: tasks, log, lock, addresses, memory.

The package knows nothing of meshes.

It never knows a mesh.
"""
