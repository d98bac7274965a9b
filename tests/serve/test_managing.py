"""Keys that are created, rotated and revoked, and what they may do."""

from functools import partial

import pytest

from belated.errors import InvalidInput
from belated.serve.domain.quotas import OpenLimit
from belated.serve.domain.refusals import Refusal
from belated.serve.domain.timestamps import MICROSECONDS
from belated.serve.service import keys, managing
from belated.serve.service.keys import Gate, Grant
from belated.serve.service.managing import KeyWish
from belated.serve.store.journal import Journal, Key
from tests.support.memory_journal import MemoryJournal, MemoryStore

NOW = 1_800_000_000 * MICROSECONDS
SCOPES = ("read", "metrics", "decide", "report", "admin")


@pytest.fixture
def journal() -> Journal:
    return MemoryJournal(MemoryStore())


class Clock:
    """The time of a gate."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> int:
        return self.now


def may(gate: Gate, text: str) -> set[str]:
    """The scopes that a key has, or why it has none."""
    found = set()
    for scope in SCOPES:
        try:
            gate.admit(text, scope)  # type: ignore[arg-type]
            found.add(scope)
        except Refusal as refusal:
            if refusal.kind != "forbidden":
                return {refusal.detail}
    return found


@pytest.mark.parametrize(
    ("scopes", "allowed"),
    [*((("admin", *more), set(SCOPES)) for more in ((), ("decide",))), *(((one,), {one}) for one in SCOPES[:-1])],
)
def test_a_key_may_do_what_its_scopes_say(journal: Journal, scopes: tuple[str, ...], allowed: set[str]) -> None:
    made = managing.create(journal, KeyWish(scopes, "shop"), NOW)
    assert may(Gate(journal.keys()), made.text) == allowed
    both = managing.create(journal, KeyWish(["decide", "report", "decide"]), NOW)
    assert both.key.scope == "decide+report"
    assert may(Gate(journal.keys()), both.text) == {"decide", "report"}


def test_a_key_ends_at_its_time_by_the_clock_of_the_service(journal: Journal) -> None:
    made, clock = managing.create(journal, KeyWish(["read"], expires_in=60), NOW), Clock()
    gate = Gate(journal.keys(), now=clock)
    assert made.key.expires_at == NOW + 60 * MICROSECONDS
    clock.now += 60 * MICROSECONDS - 1
    assert may(gate, made.text) == {"read"}
    clock.now += 1
    assert may(gate, made.text) == {"the key has expired"}
    with pytest.raises(Refusal) as refused:
        gate.admit(made.text, "read")
    assert refused.value.key == (made.key.id, made.key.id)
    assert may(gate, made.text[:-1] + "x") == {"the key is missing, unknown or revoked"}


def test_an_older_release_refuses_a_key_that_expires_or_has_a_new_scope(journal: Journal) -> None:
    """It compares the whole scope with what a route needs and with admin."""
    wishes = [KeyWish(["admin"], expires_in=60), KeyWish(["decide", "report"]), KeyWish(["read"]), KeyWish(["metrics"])]
    for wish in wishes:
        stored = managing.create(journal, wish, NOW).key.scope.split()[0]
        assert stored not in ("decide", "report", "admin")
    plain = managing.create(journal, KeyWish(["decide"]), NOW)
    assert plain.key.scope == "decide"
    managing.rotate(journal, plain.key.id, 60, None, NOW)
    [old] = [key for key in journal.keys() if key.id == plain.key.id]  # noqa: SIM118
    assert old.scope == "expiring+decide"


@pytest.mark.parametrize("expires_in", [None, 1000.0])
def test_a_rotated_key_may_do_the_same_and_the_old_one_ends_after_the_overlap(
    journal: Journal, expires_in: float | None
) -> None:
    wish = KeyWish(["decide", "report"], "shop", "layout", expires_in, 5, 2.5)
    old, clock = managing.create(journal, wish, NOW), Clock()
    clock.now += 10 * MICROSECONDS
    new = managing.rotate(journal, old.key.id, 30, None, clock.now)
    again = managing.rotate(journal, old.key.id, 30, None, clock.now)  # its answer was lost
    gate = Gate(journal.keys(), now=clock)
    assert len({one.text for one in (old, new, again)}) == 3
    for made in (old, new, again):
        grant = gate.admit(made.text, "decide")
        first = "" if made is old else old.key.id
        assert grant == Grant("decide+report", "layout", made.key.id, 5, 2.5, "shop", first)
        assert grant.limit == OpenLimit(old.key.id, 5)  # they share the room
        assert grant.by == "shop"
    for made in (new, again):
        wanted = None if expires_in is None else clock.now + 1000 * MICROSECONDS
        assert made.key.expires_at == wanted
    clock.now += 30 * MICROSECONDS
    assert may(gate, old.text) == {"the key has expired"}
    assert may(gate, new.text) == {"decide", "report"}
    third = managing.rotate(journal, new.key.id, 30, None, clock.now)
    assert Gate(journal.keys(), now=clock).admit(third.text, "decide").limit == OpenLimit(old.key.id, 5)
    with pytest.raises(Refusal, match="Create a new one"):
        managing.rotate(journal, old.key.id, 30, None, clock.now)
    with pytest.raises(Refusal, match="there is no key 'nope'"):
        managing.rotate(journal, "nope", 30, None, clock.now)


@pytest.mark.parametrize(("max_open", "rate", "is_shared"), [(5, None, True), (None, 2.5, True), (None, None, False)])
def test_keys_that_replace_each_other_share_their_limits(
    journal: Journal, max_open: int | None, rate: float | None, is_shared: bool
) -> None:
    old = managing.create(journal, KeyWish(["decide"], max_open=max_open, rate=rate), NOW)
    new = managing.rotate(journal, old.key.id, 1000, None, NOW)
    third = managing.rotate(journal, new.key.id, 1000, None, NOW)
    owners = {keys.grant_of(made.key).owner for made in (old, new, third)}
    assert owners == ({old.key.id} if is_shared else {made.key.id for made in (old, new, third)})


def test_so_many_keys_may_work_at_a_time(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(managing, "MOST_KEYS", 3)
    first, _, _ = (managing.create(journal, KeyWish(["decide"], expires_in=n), NOW) for n in (10, None, None))
    create = partial(managing.create, journal, KeyWish(["decide"]))
    rotate = partial(managing.rotate, journal, first.key.id, 0, None)
    for refused in (create, rotate):
        with pytest.raises(Refusal, match="3 keys work now, and 3 may") as error:
            refused(NOW)
        assert (error.value.kind, error.value.quota) == ("too_many", "keys")
    later = NOW + 10 * MICROSECONDS  # the first one has expired
    made = create(later)
    with pytest.raises(Refusal):
        create(later)
    managing.revoke(journal, made.key.id, later)
    create(later)


def test_an_overlap_never_prolongs_a_key(journal: Journal) -> None:
    old = managing.create(journal, KeyWish(["decide"], expires_in=10), NOW)
    managing.rotate(journal, old.key.id, 10_000, None, NOW)
    [kept] = [key for key in journal.keys() if key.id == old.key.id]  # noqa: SIM118
    assert kept.expires_at == old.key.expires_at


def test_the_first_key_over_the_api_must_be_able_to_create_others(journal: Journal) -> None:
    for wish in (KeyWish(["decide"]), KeyWish(["admin"], experiment="layout")):
        with pytest.raises(InvalidInput, match="the first key of a service must have the scope admin"):
            managing.create_first(journal, wish, NOW)
    managing.create_first(journal, KeyWish(["admin"]), NOW)
    managing.create_first(journal, KeyWish(["decide"]), NOW)


@pytest.mark.parametrize("label", ["a\nb", " a", "a" * 101, "\x1b[31m", "\u202e"])
def test_a_label_cannot_confuse_a_list(journal: Journal, label: str) -> None:
    with pytest.raises(InvalidInput, match="label"):
        managing.create(journal, KeyWish(["read"], label), NOW)
    assert list(map(len, [journal.keys()])) == [0]


def test_old_keys_still_work() -> None:
    """As releases before labels have stored them."""
    key, text = keys.new("decide", None)
    old = Key(key.id, key.digest, "decide max_open=7", "layout", 5)
    assert Gate([old]).admit(text, "decide") == Grant("decide", "layout", key.id, 7, None, "")
    admin, text = keys.new("admin", None)
    assert may(Gate([Key(*admin[:5])]), text) == set(SCOPES)


def test_uses_are_noted_in_memory_and_only_of_keys_that_were_let_in(journal: Journal) -> None:
    good, other = (managing.create(journal, KeyWish(["decide"]), NOW) for _ in range(2))
    internal, secret = keys.new("admin", "demo")
    gate = Gate(journal.keys(), [internal], lambda: NOW)  # a wrong clock of the machine is not used
    for _ in range(3):
        gate.admit(good.text, "decide")
    gate.admit(secret, "admin")
    with pytest.raises(Refusal):
        gate.admit(other.text, "admin")
    uses = gate.take_uses()
    assert uses == {good.key.id: NOW}
    assert gate.take_uses() == {}
    gate.put_back(uses)  # they could not be written
    assert gate.take_uses() == uses


def test_a_key_is_refused_by_a_service_that_has_none() -> None:
    """Otherwise its owner would believe to be protected. The simulated users of a demo always send theirs."""
    internal, secret = keys.new("admin", "demo")
    gate = Gate([], [internal])
    assert gate.admit(None, "admin") == Grant()
    assert gate.admit(secret, "admin") == Grant()
    for text in (keys.new("admin", None)[1], secret[:-1] + "x", "nonsense"):
        with pytest.raises(Refusal, match="this service has no keys"):
            gate.admit(text, "admin")
