"""Display of the bookstore in the terminal: the live view, and the table of the acceptance matrix.

`picture` turns debug pages and counters into values, `view` renders them, and `live_view` repeats both every
second. `verdicts` renders the matrix. The package never starts a program.
"""
