"""Container images from files of this machine and the project's environment, without a container engine.

The package never pulls and never starts an image.
"""
