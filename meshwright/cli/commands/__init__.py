"""The commands, one module each: read arguments, call other packages, print, and set the exit status.

A command never draws conclusions itself. The docstring of a command's function is its `--help`. Functions
import what they need in their bodies, because `meshwright --help` loads all command modules and must answer
fast.
"""
