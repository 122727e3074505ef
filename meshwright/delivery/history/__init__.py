"""The last pushes of each proxy: what it was sent, which wave that was due to, and what it said.

It is told and asked, and keeps references only. It will never decide what is sent.
"""
