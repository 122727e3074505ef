"""Timing of waves (`debounce`) and of long computations on the event loop (`time_slices`).

It never knows a mesh.
"""
