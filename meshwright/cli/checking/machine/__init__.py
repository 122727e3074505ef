"""The checks of `meshwright agent check`.

It never changes the machine.
"""
