"""The rotation of the mesh's root: its steps, proxies that delay the next step, and the files of both CAs.

It never asks a proxy: the roots that proxies trust and the certificates that they present are arguments.
"""
