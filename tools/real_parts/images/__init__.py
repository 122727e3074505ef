"""Container images of this machine's files and this project's environment, without a container engine.

It never pulls an image, and never starts one.
"""
