"""What goes wrong. Imports nothing of this package: ranks have it too."""


class TroupeError(RuntimeError):
    """A run could not be started, or was ended from outside."""


class RankFailed(TroupeError):
    """A rank failed. Its text has the rank, the node and the traceback; where the exception of the user's function could
    be carried over, it is this one's __cause__."""

    def __init__(self, text, *, rank, node, exit_code, signal, traceback=None, last_lines=()):
        super().__init__(text)
        self.rank = rank
        self.node = node
        self.exit_code = exit_code
        self.signal = signal  # 0: it exited
        self.traceback = traceback  # as the rank had it; None: it said none
        self.last_lines = list(last_lines)  # of what it printed

    def __reduce__(self):
        fields = {name: getattr(self, name) for name in ("rank", "node", "exit_code", "signal", "traceback", "last_lines")}
        return _rank_failed, (str(self), fields)


def _rank_failed(text, fields):
    return RankFailed(text, **fields)
