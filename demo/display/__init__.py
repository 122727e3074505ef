"""Display of a running bookstore in the terminal.

It never starts a program.
"""
