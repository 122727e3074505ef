"""Change of the mesh's root: the steps, the evidence for each, and CAs declared by objects.

The package never makes a CA or a certificate: `certs.roots` does.
"""
