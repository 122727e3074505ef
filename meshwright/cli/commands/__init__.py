"""The commands, one module each: from arguments to output and exit status.

A command never draws conclusions: it calls the packages below, or asks a running server.
"""
