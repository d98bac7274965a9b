"""The network between clients and servers. It loses, delays, repeats and reorders."""

from random import Random
from typing import NamedTuple, final

from belated.serve.engine.requests import Request, Result


class Call(NamedTuple):
    """A request of a client. A retry is the same call again."""

    client: int
    number: int
    request: Request


class Letter(NamedTuple):
    """A call on its way to a server."""

    call: Call
    server: int


class Reply(NamedTuple):
    """An answer on its way to a client."""

    call: Call
    result: Result


@final
class Network:
    """Everything that is on its way. Any of it may arrive next."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.on_its_way: list[Letter | Reply] = []

    def send(self, one: Letter | Reply) -> None:
        """Send something."""
        self.on_its_way.append(one)

    def take(self, *, is_repeated: bool) -> Letter | Reply:
        """Take out what arrives next. Something that is repeated stays on its way too."""
        index = self._random.randrange(len(self.on_its_way))
        one = self.on_its_way[index]
        if not is_repeated:
            self.on_its_way[index] = self.on_its_way[-1]
            self.on_its_way.pop()
        return one
