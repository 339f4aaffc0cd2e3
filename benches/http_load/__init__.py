"""Load on a session over HTTP: ``python -m benches.http_load`` prints its figures.

A server, and processes of members, talk over loopback. Members drop out, come back and send
garbage, every request is sent twice, and the server is killed and run again. Each sum is
compared bit by bit with the plain sum of its survivors, computed from seeds.
"""
