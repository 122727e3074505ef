"""The status of objects: conditions, and the status fields of the kinds of Open Service Mesh.

This package never writes Events.
"""
