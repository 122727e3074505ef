"""What a running process spends time and memory on, from inside.

It imports nothing of the program, because it looks into whichever checkout runs.
"""
