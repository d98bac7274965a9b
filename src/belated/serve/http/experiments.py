"""Handlers that create, read, change and close experiments."""

from collections.abc import Callable, Hashable
from typing import Any, Final

import msgspec
from starlette.concurrency import run_in_threadpool

from belated.serve.domain.operating import Edit, Operation
from belated.serve.domain.settings import ArmChange, Settings
from belated.serve.http.calls import NOTHING, Answer, Call, experiment_of
from belated.serve.http.documents import ArmPage, End, EventPage, ExperimentPage, Freeze, of_event
from belated.serve.service.keys import check_experiment
from belated.serve.service.service import Service

SETTINGS: Final = msgspec.json.Decoder(Settings)
ARMS: Final = msgspec.json.Decoder(ArmChange)
FROZEN: Final = msgspec.json.Decoder(Freeze)
ENDED: Final = msgspec.json.Decoder(End)
EDIT: Final = msgspec.json.Decoder(Edit)


async def create(call: Call) -> Answer:
    """Create an experiment. Sending the same settings again changes nothing."""
    settings = await call.read(SETTINGS)
    call.about = settings.name
    check_experiment(call.grant, settings.name)
    is_new = await call.service.create(settings, call.by or "")
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
    await call.service.change_arms(call.name, await call.read(ARMS), call.by or "")
    return await described(call.service, call.name)


async def close(call: Call) -> Answer:
    """Make no more decisions. Reports are still accepted."""
    await call.read(NOTHING)
    await call.service.close_experiment(call.name, call.by or "")
    return await described(call.service, call.name)


async def _operate(call: Call, operation: Operation) -> Answer:
    await call.service.operate(call.name, operation, call.by or "")
    return await described(call.service, call.name)


async def pause(call: Call) -> Answer:
    """Make no decisions until it is resumed. Reports are still accepted."""
    await call.read(NOTHING)
    return await _operate(call, Operation("paused"))


async def resume(call: Call) -> Answer:
    """Go on after a pause."""
    await call.read(NOTHING)
    return await _operate(call, Operation("resumed"))


async def freeze(call: Call) -> Answer:
    """Show one arm to all, the best one if none is named. The experiment learns nothing from these decisions."""
    return await _operate(call, Operation("frozen", (await call.read(FROZEN)).arm))


async def unfreeze(call: Call) -> Answer:
    """Go on with learning where it was."""
    await call.read(NOTHING)
    return await _operate(call, Operation("unfrozen"))


async def end(call: Call) -> Answer:
    """End with a winner, the best arm if none is named. From then on every decision shows it."""
    return await _operate(call, Operation("ended", (await call.read(ENDED)).winner))


async def edit_settings(call: Call) -> Answer:
    """Change settings while the experiment runs."""
    edit = await call.read(EDIT)
    return await _operate(call, Operation("edited", settings=edit))


async def list_all(call: Call) -> Answer:
    """List experiments, oldest first."""
    service, (after, limit), only = call.service, call.page(), call.grant.experiment
    return await made(service, (after, limit, only), lambda: experiment_page(service, after, limit, only))


def experiment_page(service: Service, after: int, limit: int, only: str | None) -> ExperimentPage:
    """Return a page of experiments. `only` is the one experiment that the caller may see."""
    return ExperimentPage(*service.experiments(after, limit, only)[:2])


async def list_events(call: Call) -> Answer:
    """List what happened to the experiment itself: creation, changes, pauses, its end, and which key did it."""
    experiment, (after, limit) = await experiment_of(call), call.page()

    def read_page() -> EventPage:
        page = call.service.lists.events(experiment, after, limit)
        return EventPage([of_event(entry) for entry in page.items], page.next, page.resume)

    return Answer(200, await run_in_threadpool(read_page))
