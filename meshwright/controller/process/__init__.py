"""Parts of any long-running process: tasks, log, lock, addresses, memory.

Nothing here depends on meshes, so another program could use the parts as they are.

The package never knows a mesh.
"""
