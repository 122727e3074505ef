"""Change of the mesh's root: its steps, the evidence for each, and CAs declared by objects.

Making a CA or a certificate is left to `certs.roots`.
"""
