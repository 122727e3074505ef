"""The commands, one module each: read arguments, call other packages, print, and set the exit status.

A command never draws conclusions itself. The docstring of a command's function is the text of `--help`.
Functions import other packages in their bodies, because `meshwright --help` loads all command modules and
must answer fast.
"""
