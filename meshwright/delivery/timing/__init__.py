"""Timing of waves (`debounce`) and of long computations on the event loop (`time_slices`).

The package knows nothing of meshes.
"""
