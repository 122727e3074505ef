"""The view, which holds all objects of the mesh, and the edits that change it.

It stores and finds objects. It never derives anything from them: the packages above it do.
"""
