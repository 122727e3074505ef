"""`python -m meshwright`: the same as the command."""

from meshwright.guard import main

main()
