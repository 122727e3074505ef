"""Pages about the mesh as a whole: topology, traffic, sources, certificates, published resources.

It never shows a key.
"""
