"""Other programs, run as commands: asked something, waited for, and gone with all that they have started.

It will never know what a program is asked, read what it says, or keep one that is to run on.
"""
