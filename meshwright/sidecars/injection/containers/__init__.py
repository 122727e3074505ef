"""The containers and volumes that are put into a Pod.

The package never changes the containers of the Pod's author.
"""
