"""All errors. A call that raises one of these has changed nothing.

BelatedError
├── InvalidInput          a value outside what is allowed (also a ValueError)
├── UnknownRound          a report for a round that was never asked (also a LookupError)
├── DuplicateReport       a second report of one round
├── ImproperRule          a tuning whose rates decrease, are negative or not finite (also a ValueError)
├── SnapshotError         a snapshot of the wrong kind, version or shape (also a ValueError)
├── StoreError            the service's journal, or a stored game, cannot be read or written
│   ├── HistoryLost       the store has lost entries that it had acknowledged
│   └── StoreUnreachable  the store does not answer now, and a later call may succeed
├── GameError             something of your own failed while the lab played it. The cause is its `__cause__`
├── ClusterError          Dask's scheduler or workers do not answer, do not fit, or die
└── ServiceError          the service refused a request, or did not answer (raised by the client)
"""


class BelatedError(Exception):
    """The root of every error that Belated raises on purpose."""


class InvalidInput(BelatedError, ValueError):
    """A value outside what is allowed."""


class UnknownRound(BelatedError, LookupError):
    """A report for a round that was never asked."""

    def __init__(self, round: int, asked: int) -> None:
        super().__init__(round, asked)

    def __str__(self) -> str:
        round, asked = self.args
        so_far = f"1 to {asked}" if asked else "none"
        return f"round {round} was never asked. Rounds so far: {so_far}. Pass a decision of this learner, or its round"


class DuplicateReport(BelatedError):
    """A second report of one round."""

    def __init__(self, round: int) -> None:
        super().__init__(round)

    def __str__(self) -> str:
        return (
            f"round {self.args[0]} has been reported or given up already. To change its outcome, use "
            "amend(decision, old, new). A late report of a round that was given up is amend(decision, None, loss)"
        )


class ImproperRule(BelatedError, ValueError):
    """A tuning whose rates decrease, are negative or are not finite (ZS20 calls the others proper)."""


class SnapshotError(BelatedError, ValueError):
    """A snapshot of the wrong kind, version or shape."""


class StoreError(BelatedError):
    """The service's journal, or a stored game, cannot be read or written."""


class HistoryLost(StoreError):
    """The store has lost entries that it had acknowledged, such as after a failover or an older backup."""


class StoreUnreachable(StoreError):
    """The store does not answer now. It is not known whether an append was written. A later call tries again."""


class ClusterError(BelatedError):
    """Dask's scheduler or workers do not answer, would not give the same results, or die again and again."""


class GameError(BelatedError):
    """Something of your own failed while the lab played it. Says where. The failure itself is the `__cause__`."""


class ServiceError(BelatedError):
    """The service refused a request or did not answer. It has `status` (0 without an answer), `title` and `detail`.

    If a report contradicts an earlier one, `revision` is that of the outcome in force. `request_id` finds the request
    in the service's log.
    """

    def __init__(
        self, status: int, title: str, detail: str = "", revision: int | None = None, request_id: str = ""
    ) -> None:
        super().__init__(status, title, detail, revision, request_id)
        self.status, self.title, self.detail, self.revision = status, title, detail, revision
        self.request_id = request_id

    def __str__(self) -> str:
        return f"{f'{self.status} ' if self.status else ''}{self.title}{f': {self.detail}' if self.detail else ''}"


class UnfinishedWarning(UserWarning):
    """Ctrl-C has stopped the lab, so the results lack some games. `is_whole` of the results is False too."""


class MismatchWarning(UserWarning):
    """A learner's `distribution()` does not fit the arms that it draws, so its expected regret means nothing."""


class RepeatWarning(UserWarning):
    """A new learner with the same seed plays another game. Its numbers are not repeatable, and they may be wrong."""


class SharedRandomnessWarning(UserWarning):
    """A game drew random numbers that all of Python shares, so its seed does not give the same result again."""
