"""What any long-running process needs: its tasks, its log, its lock, its addresses, its memory.

It knows no mesh.
"""
