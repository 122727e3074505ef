"""`python -m meshwright`: the same as the command."""

from meshwright import main

main()
