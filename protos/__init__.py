"""Wire formats: Envoy's API, generated at build time under `protos.`, and our own `.proto` files.

It will never hold code written by hand, and nothing generated in it is committed.
"""
