"""The change of the mesh's root: its steps, the evidence for each, and roots that objects declare.

It never makes a CA or a certificate: `certs.roots` does.
"""
