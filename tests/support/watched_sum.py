"""Sum that records its calls for a test."""

from functools import partialmethod

from fedmf.aggregate import PlainSum


class Watched:
    """Plain sum that records its calls, and can be made to abort or be interrupted."""

    def __init__(self, *outcomes):
        self.plain = PlainSum()
        self.calls = []
        self.outcomes = list(outcomes)

    def _call(self, kind, vectors, *, dropouts, session):
        dense = {user: vectors[user].dense() for user in vectors}
        self.calls.append((kind, dense, dict(dropouts), session))
        outcome = self.outcomes.pop(0) if self.outcomes else None
        if outcome:
            raise outcome
        return getattr(self.plain, kind)(vectors, dropouts=dropouts)

    sum, count = partialmethod(_call, "sum"), partialmethod(_call, "count")


class Kept(PlainSum):
    """Plain sum that keeps the users' tables of each sum, in `sums`."""

    def sum(self, vectors, *, dropouts, session=b""):
        tables = [vectors[user].dense() for user in vectors]
        vars(self).setdefault("sums", []).append(tables)
        return super().sum(vectors, dropouts=dropouts, session=session)
