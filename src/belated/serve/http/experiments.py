"""Handlers that create, read, change and close experiments."""

from collections.abc import Callable, Hashable
from typing import Any, Final

import msgspec
from starlette.concurrency import run_in_threadpool

from belated.serve.domain.settings import ArmChange, Settings
from belated.serve.http.calls import NOTHING, Answer, Call, experiment_of
from belated.serve.http.documents import ArmPage, EventPage, ExperimentPage, of_event
from belated.serve.service.keys import check_experiment
from belated.serve.service.service import Service

SETTINGS: Final = msgspec.json.Decoder(Settings)
ARMS: Final = msgspec.json.Decoder(ArmChange)


async def create(call: Call) -> Answer:
    """Create an experiment. Sending the same settings again changes nothing."""
    settings = await call.read(SETTINGS)
    call.about = settings.name
    check_experiment(call.grant, settings.name)
    is_new = await call.service.create(settings)
    return await described(call.service, settings.name, 201 if is_new else 200)


async def made(service: Service, key: Hashable, document: Callable[[], Any], status: int = 200) -> Answer:
    """Answer with a document. It is made and encoded in the thread for documents."""
    return Answer(status, await service.views.make(key, lambda: msgspec.json.encode(document())))


async def described(service: Service, name: str, status: int = 200) -> Answer:
    """Answer with everything about an experiment."""
    return await made(service, name, lambda: service.experiment_view(name), status)


async def read(call: Call) -> Answer:
    """Read everything about an experiment."""
    call.query()
    name = (await experiment_of(call)).name
    return await described(call.service, name)


async def list_arms(call: Call) -> Answer:
    """List all arms that ever took part, with everything about each."""
    name, (after, limit) = (await experiment_of(call)).name, call.page()
    service = call.service
    return await made(service, (name, after, limit), lambda: ArmPage(*service.arms(name, after, limit)[:2]))


async def change_arms(call: Call) -> Answer:
    """Add and retire arms."""
    await call.service.change_arms(call.name, await call.read(ARMS))
    return await described(call.service, call.name)


async def close(call: Call) -> Answer:
    """Make no more decisions. Reports are still accepted."""
    await call.read(NOTHING)
    await call.service.end(call.name)
    return await described(call.service, call.name)


async def list_all(call: Call) -> Answer:
    """List experiments, oldest first."""
    service, (after, limit), only = call.service, call.page(), call.grant.experiment
    return await made(service, (after, limit, only), lambda: experiment_page(service, after, limit, only))


def experiment_page(service: Service, after: int, limit: int, only: str | None) -> ExperimentPage:
    """Return a page of experiments. `only` is the one experiment that the caller may see."""
    return ExperimentPage(*service.experiments(after, limit, only)[:2])


async def list_events(call: Call) -> Answer:
    """List what happened to the experiment itself: creation, changes of arms, closing."""
    experiment, (after, limit) = await experiment_of(call), call.page()

    def read_page() -> EventPage:
        page = call.service.lists.events(experiment, after, limit)
        return EventPage([of_event(entry) for entry in page.items], page.next, page.resume)

    return Answer(200, await run_in_threadpool(read_page))
