"""What people and programs look at: metrics, health, debug pages, the Unix socket of the state directory.

It reads the rest through small protocols (`reading`) and shows what it reads. It will never decide
anything of the mesh, and never show a private key or a secret.
"""
