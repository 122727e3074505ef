"""What is known of the mesh: the view, and the edits by which it changes.

It keeps and finds; what follows from what it holds is said in the rooms above it.
"""
