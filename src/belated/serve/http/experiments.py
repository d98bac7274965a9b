"""Experiments: creating, reading, changing and closing them."""

from typing import Final

import msgspec
from starlette.concurrency import run_in_threadpool

from belated.serve.domain.settings import ArmChange, Settings
from belated.serve.engine.requests import ChangeArms, Close, Create
from belated.serve.http.calls import Answer, Call
from belated.serve.http.decisions import experiment_of, folded
from belated.serve.http.documents import EVENTS, Event, EventPage, ExperimentPage, NewDecision
from belated.serve.service.keys import check_experiment
from belated.serve.service.service import Service
from belated.serve.service.views import iso, summary

SETTINGS: Final = msgspec.json.Decoder(Settings)
ARMS: Final = msgspec.json.Decoder(ArmChange)
NOTHING: Final = msgspec.json.Decoder(NewDecision)


async def create(call: Call) -> Answer:
    """Begin an experiment; the same settings again are no conflict."""
    settings = await call.read(SETTINGS)
    check_experiment(call.grant, settings.name)
    _, is_new = await call.service.writer.submit(Create(settings))
    return Answer(201 if is_new else 200, call.service.experiment_view(settings.name))


async def read(call: Call) -> Answer:
    """All about an experiment."""
    call.query()
    await experiment_of(call.service, call.name)
    return Answer(200, call.service.experiment_view(call.name))


async def change_arms(call: Call) -> Answer:
    """Add and retire arms."""
    await call.service.writer.submit(ChangeArms(call.name, await call.read(ARMS)))
    return Answer(200, call.service.experiment_view(call.name))


async def close(call: Call) -> Answer:
    """No more decisions; feedback is still taken."""
    await call.read(NOTHING)
    await call.service.writer.submit(Close(call.name))
    return Answer(200, call.service.experiment_view(call.name))


def page_of(service: Service, after: int, limit: int, only: str | None = None) -> ExperimentPage:
    """A page of experiments in the order of their creation; `only` the one a key is for."""
    with service.engine.lock:
        later = [
            one for seq, one in service.engine.fold.experiments.items() if seq > after and only in (None, one.name)
        ]
        more = str(later[limit - 1].seq) if len(later) > limit else None
        return ExperimentPage([summary(one) for one in later[:limit]], more)


async def list_all(call: Call) -> Answer:
    """A page of experiments, oldest first."""
    return Answer(200, page_of(call.service, *call.page(), call.grant.experiment))


async def list_events(call: Call) -> Answer:
    """What happened to the experiment itself: creation, changes of arms, closing."""
    experiment, (after, limit) = await experiment_of(call.service, call.name), call.page()

    def find() -> EventPage:
        page = call.service.ask(lambda reader: reader.events(experiment.seq, after, limit + 1))
        page = folded(page, call.service, lambda entry: entry.seq)
        more = str(page[limit - 1].seq) if len(page) > limit else None
        events = [Event(EVENTS[entry.kind], iso(entry.at), msgspec.Raw(entry.body or b"{}")) for entry in page[:limit]]  # type: ignore[arg-type]
        return EventPage(events, more)

    return Answer(200, await run_in_threadpool(find))
