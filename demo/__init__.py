"""The bookstore on one machine: a mesh to watch, to edit, and to check against a table.

Drives Meshwright from outside, by its commands, its socket and files in the mesh directory, as a user
would. It will never import a package of the control plane other than the nouns of `mesh`, and nothing of
the control plane will ever import it.
"""
