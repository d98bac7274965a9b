"""Erases decisions, and all that was said about them, from a store in use and from the files of an archive."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import polars as pl

from belated.errors import InvalidInput, StoreError
from belated.serve.archive import files
from belated.serve.archive.settling import settle
from belated.serve.domain import aliases, ids
from belated.serve.domain.entries import EntryKind
from belated.serve.domain.fold import Fold
from belated.serve.domain.ids import DecisionId
from belated.serve.domain.parts import is_open
from belated.serve.engine.feedback import look_up
from belated.serve.store.journal import Journal, Removal, entries
from belated.serve.store.removal import begin, loaded, put_base, remove

MOST_ROUNDS: Final = 10  # bases that one command may put in force
PAUSE: Final = 1.0  # seconds for a server that had looked up a decision to write the report


class Known(NamedTuple):
    """What a store holds of the decisions to erase."""

    seqs: list[int]
    unknown: list[str]
    open: int  # how many have no outcome


def decoded(texts: Sequence[str]) -> dict[str, DecisionId]:
    """Read ids. Raises InvalidInput if one is none."""
    found: dict[str, DecisionId] = {}
    for text in texts:
        one = ids.decode(text)
        if one is None:
            raise InvalidInput(f"{text!r:.80} is not the id of a decision. Nothing was erased")
        found[text] = one
    return found


def of_subjects(journal: Journal, fold: Fold, subjects: Sequence[str], folder: Path | None = None) -> list[str]:
    """Return the ids of all decisions of these subjects, in the store and in the files of an archive."""
    names = [(one, subject) for one in fold.experiments.values() for subject in subjects]
    digests = {(one.seq, aliases.of_subject(one.name, subject)) for one, subject in names}
    found = [entry for made in journal.aliased(list(digests)).values() for entry in made]
    ids_of = [ids.encode(entry.at, entry.seq, entry.nonce or 0) for entry in found]
    for path in [] if folder is None else _tables(folder):
        ids_of += _in_table(pl.read_parquet(path, glob=False), [digest for _, digest in digests])
    return list(dict.fromkeys(ids_of))


def _in_table(table: pl.DataFrame, digests: Sequence[bytes]) -> list[str]:
    """Return the ids of the decisions in a file of an archive whose subject has one of these digests."""
    if {"decision_id", "subject"} <= set(table.columns):
        own = table.filter(pl.col("subject").is_in([digest.hex() for digest in digests]))
        return own["decision_id"].to_list()
    if {"seq", "alias", "nonce", "kind"} <= set(table.columns):
        own = table.filter((pl.col("kind") == int(EntryKind.DECIDED)) & pl.col("alias").is_in(list(digests)))
        return [ids.encode(*row) for row in own.select("at", "seq", "nonce").iter_rows()]
    return []  # of an older release, which knows no subjects, or not a file of an archive


def known(journal: Journal, wanted: dict[str, DecisionId]) -> Known:
    """Look for decisions, and for outcomes whose decision is gone already."""
    seqs, unknown, n_open = list[int](), list[str](), 0
    for (text, one), found in zip(wanted.items(), look_up(list(wanted), journal), strict=True):
        if found is not None or any(entry.nonce == one.nonce for entry in journal.history(one.seq)):
            seqs.append(one.seq)
            n_open += found is not None and is_open(found)
        else:
            unknown.append(text)
    return Known(seqs, unknown, n_open)


def erase(
    journal: Journal,
    wanted: dict[str, DecisionId],
    grace: float,
    progress: Callable[[int], object] = lambda _: None,
    pause: float = PAUSE,
) -> int:
    """Erase decisions. Returns how many entries went. If reports came meanwhile, it begins again until none is left.

    Those without an outcome are settled first, so the base has them as removed, and nobody can report them any more.
    """
    count = 0
    for _ in range(MOST_ROUNDS):
        left = known(journal, wanted).seqs
        if not left:
            return count
        fold, at = loaded(journal), journal.now()
        settle(journal, journal.find(left).values(), fold.tail.short_mark(), at)
        fold.apply(entries(journal, fold.seq, journal.last()))
        base = put_base(journal, fold, at)
        begin(journal, base, grace)
        count += remove(journal, Removal(base.seq, decisions=tuple(left)))
        progress(count)
        time.sleep(pause)
    if left := known(journal, wanted).seqs:
        raise StoreError(f"reports of {len(left)} decisions keep coming. Run the command again.")
    return count


def _tables(folder: Path) -> list[Path]:
    """Return the Parquet files of a folder. Empty ones are of a command that was killed."""
    return [path for path in sorted(folder.glob("*.parquet")) if path.stat().st_size]


def check_files(folder: Path) -> None:
    """Raise InvalidInput if the folder is missing or a Parquet file in it cannot be read."""
    if not folder.is_dir():
        raise InvalidInput(f"there is no folder {folder}. Nothing was erased")
    for path in _tables(folder):
        try:
            pl.read_parquet_schema(path)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise InvalidInput(f"{path} cannot be read: {error}. Move it away. Nothing was erased") from None


def erase_from_files(folder: Path, wanted: dict[str, DecisionId]) -> dict[Path, int]:
    """Erase decisions from the files of an archive. Returns how many rows of which files went."""
    check_files(folder)
    texts = [text.lower() for text in wanted]
    seqs, nonces = [one.seq for one in wanted.values()], [one.nonce for one in wanted.values()]
    gone: dict[Path, int] = {}
    for path in folder.glob(".*.partial"):  # of a command that was killed
        path.unlink()
    for path in _tables(folder):
        table = pl.read_parquet(path, glob=False)
        if {"decision_id", "probability"} <= set(table.columns):
            is_gone = pl.col("decision_id").is_in(texts)
        elif {"seq", "decision", "nonce"} <= set(table.columns):
            decision = pl.coalesce("decision", "seq")  # every entry in it is a decision or an outcome
            is_gone = decision.is_in(seqs) & pl.col("nonce").is_in(nonces).fill_null(value=True)
        else:
            continue  # not a file of an archive
        left = table.filter(~is_gone)
        if left.height < table.height:
            files.put_table(path, left)
            gone[path] = table.height - left.height
    return gone
