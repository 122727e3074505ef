"""The containers and volumes that are put into a Pod.

It never changes the containers of the Pod's author.
"""
