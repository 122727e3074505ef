"""What is wrong between objects, each of which is right by itself.

It says; it will never change what is in force.
"""
