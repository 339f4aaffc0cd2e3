"""Clients that lie, each in one way. Party has where it starts."""

from parties import Remembering


class WrongShare(Remembering):
    """Flips the lowest bit of the first share that it reveals."""

    revealed = False

    def _reveal(self, u: int, kind: int) -> bytes:
        share = super()._reveal(u, kind)
        if self.revealed:
            return share
        self.revealed = True
        return bytes([share[0] ^ 1]) + share[1:]
