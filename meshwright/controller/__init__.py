"""The composition root: settings, wiring, the process and its tasks.

It knows every component and joins them. It will never hold a rule of the mesh, of a protocol or of a
certificate: those live in the packages it joins.
"""
