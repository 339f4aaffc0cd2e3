"""Application of the comparison, for `flwr run`; each variant has a client and a server."""
