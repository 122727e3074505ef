"""Readers of the kind Workload and of the DNS annotations under `meshwright.dev`.

They never resolve a name.
"""
