"""Writing the status of objects: conditions, and the words of Open Service Mesh's kinds.

It never writes an Event.
"""
