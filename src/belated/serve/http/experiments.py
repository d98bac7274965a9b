"""Handlers that create, read, change and close experiments."""

from typing import Final

import msgspec
from starlette.concurrency import run_in_threadpool

from belated.serve.domain.settings import ArmChange, Settings
from belated.serve.http.calls import NOTHING, Answer, Call, experiment_of
from belated.serve.http.documents import EventPage, ExperimentPage, of_event
from belated.serve.service.keys import check_experiment
from belated.serve.service.service import Service

SETTINGS: Final = msgspec.json.Decoder(Settings)
ARMS: Final = msgspec.json.Decoder(ArmChange)


async def create(call: Call) -> Answer:
    """Create an experiment. Sending the same settings again changes nothing."""
    settings = await call.read(SETTINGS)
    check_experiment(call.grant, settings.name)
    is_new = await call.service.create(settings)
    return Answer(201 if is_new else 200, call.service.experiment_view(settings.name))


async def read(call: Call) -> Answer:
    """Read everything about an experiment."""
    call.query()
    name = (await experiment_of(call)).name
    return Answer(200, call.service.experiment_view(name))


async def change_arms(call: Call) -> Answer:
    """Add and retire arms."""
    await call.service.change_arms(call.name, await call.read(ARMS))
    return Answer(200, call.service.experiment_view(call.name))


async def close(call: Call) -> Answer:
    """Make no more decisions. Reports are still accepted."""
    await call.read(NOTHING)
    await call.service.end(call.name)
    return Answer(200, call.service.experiment_view(call.name))


async def list_all(call: Call) -> Answer:
    """List experiments, oldest first."""
    return Answer(200, experiment_page(call.service, *call.page(), call.grant.experiment))


def experiment_page(service: Service, after: int, limit: int, only: str | None) -> ExperimentPage:
    """Return a page of experiments. `only` is the one experiment that the caller may see."""
    return ExperimentPage(*service.experiments(after, limit, only))


async def list_events(call: Call) -> Answer:
    """List what happened to the experiment itself: creation, changes of arms, closing."""
    experiment, (after, limit) = await experiment_of(call), call.page()

    def read_page() -> EventPage:
        page = call.service.events(experiment, after, limit)
        return EventPage([of_event(entry) for entry in page.items], page.next)

    return Answer(200, await run_in_threadpool(read_page))
