"""`meshwright connectivity`: each step of a request, judged from the server's facts and one real request.

`facts` reads the answers of the server and of the caller's agent. `request` plans the real request and judges
the outcome, `steps` judges all steps in the order of the request, and `printing` prints them. All modules are
pure: the package never sends the request itself, the command does.
"""
