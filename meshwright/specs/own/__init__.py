"""Readers of the kind Workload and of the annotations under `meshwright.dev`.

They never resolve a name.
"""
