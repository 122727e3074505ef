"""Change of the mesh's root: its steps, the evidence for each, and CAs declared by objects.

It never makes a CA or a certificate: `certs.roots` does.
"""
