"""The last pushes of each proxy: the resources sent, the wave that caused the push, and the proxy's answer.

It stores references only, and never decides which resources are sent.
"""
