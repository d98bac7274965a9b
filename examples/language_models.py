"""Route questions between language models. Ratings come late, answers cost money, and one provider fails silently.

belated serve
python examples/language_models.py http://127.0.0.1:8321

The models are simulated. docs/language-models.md explains the code.
"""

import heapq
import os
import random
import sys
import time
from typing import NamedTuple

from belated import Client
from belated.client import ServiceDecision

EXPERIMENT, QUESTIONS, WAIT = "models", 400, 2.5  # with real models, wait for hours or days
PARTS = {
    "answered": {"weight": 1, "default": 0},
    "rating": {"lowest": 1, "highest": 5, "weight": 3, "default": 3},
    "dollars": {"highest": 0.05, "better": "lower", "weight": 1, "default": 0.05},
    "seconds": {"highest": 30, "better": "lower", "weight": 1, "default": 30},
}


class Answer(NamedTuple):
    """What a model said, and what that took."""

    text: str
    dollars: float
    seconds: float


class Model(NamedTuple):
    """A simulated model of some provider."""

    stars: float  # its mean rating
    dollars: float
    seconds: float
    fails: float = 0.0  # how often nothing comes back

    def answer(self, question: str) -> Answer | None:
        """Answer a question, or say nothing."""
        if random.random() < self.fails:
            return None
        spread = random.uniform(0.5, 1.5)
        return Answer(f"an answer to {question}", self.dollars * spread, self.seconds * spread)

    def rating(self) -> int:
        """What a person thinks of an answer, from 1 to 5 stars."""
        return min(5, max(1, round(random.gauss(self.stars, 0.8))))


Rating = tuple[float, int, ServiceDecision]  # when it comes, the number of the question, and what was decided
MODELS = {"small": Model(3.2, 0.001, 1), "large": Model(4.6, 0.010, 5), "flaky": Model(4.9, 0.002, 2, fails=0.5)}


def create(client: Client) -> None:
    """Create the experiment, if it is not there yet."""
    client.create_experiment(EXPERIMENT, list(MODELS), parts=PARTS, reward_wait=WAIT, floor=0.1)


def route(client: Client, question: str) -> tuple[ServiceDecision, Answer | None]:
    """Answer a question with the model that the service chooses, and report what is known at once."""
    decision = client.ask(EXPERIMENT, fallback="small", deadline=0.5)
    answer = MODELS[decision.arm].answer(question)
    if answer is not None:
        parts = {"answered": 1, "dollars": min(answer.dollars, 0.05), "seconds": min(answer.seconds, 30)}
        client.tell(decision, parts=parts, fallback="lost", deadline=0.5)
    return decision, answer


def rate(client: Client, decision: ServiceDecision, stars: int) -> None:
    """Report a rating, whenever it comes."""
    client.tell(decision, parts={"rating": stars}, fallback="lost", deadline=0.5)


def play(client: Client) -> None:
    """Ask all questions. Six of ten answers are rated, a second or so later."""
    ratings: list[Rating] = []
    for number in range(QUESTIONS):
        decision, answer = route(client, f"question {number}")
        if answer is not None and random.random() < 0.6:
            heapq.heappush(ratings, (time.monotonic() + random.uniform(0.3, 1.5), number, decision))
        while ratings and ratings[0][0] <= time.monotonic():
            rate_next(client, ratings)
        time.sleep(0.005)
    while ratings:
        time.sleep(max(0.0, ratings[0][0] - time.monotonic()))
        rate_next(client, ratings)


def rate_next(client: Client, ratings: list[Rating]) -> None:
    """Report the rating that is due next."""
    _, _, decision = heapq.heappop(ratings)
    rate(client, decision, MODELS[decision.arm].rating())


def show(client: Client) -> None:
    """Print what is known when all waits have ended."""
    while client.experiment(EXPERIMENT)["outstanding"]:
        time.sleep(0.2)
    document = client.experiment(EXPERIMENT)
    print("model   chosen  score  rating  dollars  seconds")
    for arm in document["arms"]:
        means = {name: part["mean"] or 0.0 for name, part in arm["parts"].items()}
        known = f"{means['rating']:7.2f} {means['dollars']:8.4f} {means['seconds']:8.1f}"
        print(f"{arm['name']:7} {arm['chosen']:6} {arm['mean'] or 0.0:6.3f} {known}")
    print(f"the best so far: {document['verdict']['leader']}")


if __name__ == "__main__":
    with Client(sys.argv[1], key=os.environ.get("BELATED_KEY")) as client:
        create(client)
        play(client)
        show(client)
