"""What the demo shows of a running bookstore.

It never starts a program.
"""
