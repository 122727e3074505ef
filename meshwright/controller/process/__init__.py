"""The needs of any long-running process: tasks, logs, a lock, addresses, memory.

It never knows a mesh.
"""
