"""A server that lies, at every door of the library, and the checks of what it gets by that.

A *door* runs whole sums with clients in this process (`door`). `walk` finds the fields of all
that the server sends, and alters a field for some of the clients. The clients' training reads
all of the server's side that it can reach, and scales its update by what it read. `checker`
knows the clients' vectors and judges a schedule. `oracle` tells two worlds with equal sums
apart by all that a server sees. `mends` names the mends that can be taken out again.
"""
