"""`meshwright connectivity`: each step of a request, judged from the server's facts and one real request.

Pure. It never sends the request: the command does.
"""
