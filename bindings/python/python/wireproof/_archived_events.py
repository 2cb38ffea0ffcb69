"""Rows of the table `events`, judged again one by one: each frame under the key that is stored with it."""

from __future__ import annotations

import hashlib
import hmac
from functools import lru_cache

from . import CarError, Judge, verify_repo

# As `typing` has it, without the 20 ms of its import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

#: The columns that are judged.
EVENT_COLUMNS = ("did", "arrival", "received", "verdict", "key", "form", "frame")

#: The columns of the result, all of them text but `arrival`.
VERDICT_COLUMNS = ("did", "arrival", "stored", "form", "status", "code", "message")

#: The values of `status`.
PROVED, REFUSED, UNVERIFIED, COMPACT = "proved", "refused", "unverified", "compact"

Verdict = tuple[str, "str | None", "str | None"]


class EventJudge:
    """Judges rows of `events`. A row is judged alone: what comes before it does not change its verdict.

    Args:
        policy: options of `Judge`, by name.
        erased: the keys under which accounts were erased, each with the hashes of their DIDs.
    """

    def __init__(self, policy: Mapping[str, Any], erased: list[tuple[bytes, list[bytes]]]) -> None:
        options = dict(policy)
        self._window_micros = int(options.pop("future_window", 300) * 1_000_000)
        self._keys: dict[str, str] = {}
        self._is_key = lru_cache(maxsize=65_536)(_is_key)
        self._judge = Judge(self._keys, None, **options, future_window=ANY_TIME_SECONDS)
        self._erased = [(key, set(hashes)) for key, hashes in erased if hashes]

    def judge(self, batch: Any) -> dict[str, list[Any]]:
        """The columns of the verdicts of a record batch of pyarrow that has `EVENT_COLUMNS`, a row for each of its rows."""
        columns = {name: _values(batch, name) for name in EVENT_COLUMNS}
        verdicts: list[Verdict | None] = [
            self._without_frame(*row)
            for row in zip(columns["did"], columns["verdict"], columns["form"], strict=True)
        ]
        waiting = [row for row, verdict in enumerate(verdicts) if verdict is None]
        for run in _runs(waiting, columns["did"], columns["key"]):
            for row, verdict in zip(run, self._judge_run(run, columns), strict=True):
                verdicts[row] = verdict
        status, code, message = zip(*verdicts, strict=True) if verdicts else ((), (), ())
        return {
            "did": columns["did"],
            "arrival": columns["arrival"],
            "stored": columns["verdict"],
            "form": columns["form"],
            "status": list(status),
            "code": list(code),
            "message": list(message),
        }

    def _without_frame(self, did: str | None, stored: str | None, form: str | None) -> Verdict | None:
        """The verdict of a row whose frame is not judged."""
        if did is not None and self._is_erased(did):
            return REFUSED, "archive/erased", "the account was erased, and has a row again: erase it again"
        if stored is None or (stored != "verified" and not stored.startswith("verified/")):
            return UNVERIFIED, stored, None
        if form == "full":
            return None
        if form == "compact":
            return COMPACT, None, None
        return REFUSED, "archive/form", f"the form {form} is unknown"

    def _is_erased(self, did: str) -> bool:
        return any(hmac.digest(key, did.encode(), hashlib.sha256) in hashes for key, hashes in self._erased)

    def _judge_run(self, run: list[int], columns: Mapping[str, list[Any]]) -> Iterator[Verdict]:
        """The verdicts of rows of which each account has one key."""
        self._keys.clear()
        for row in run:
            did, key = columns["did"][row], columns["key"][row]
            if did is not None and key is not None and self._is_key(key):
                self._keys[did] = key
        frames = [columns["frame"][row] or b"" for row in run]
        self._judge.state().clear()
        for row, frame, outcome in zip(run, frames, self._judge.batch(frames), strict=True):
            if outcome.verdict == "ignored":
                # A revision that is stored twice, or one after a later one: it is proved alone.
                self._judge.state().clear()
                [outcome] = self._judge.batch([frame])
            yield self._verdict(outcome, columns["did"][row], columns["received"][row])

    def _verdict(self, outcome: Any, did: str | None, received: int | None) -> Verdict:
        if outcome.verdict == "unchecked":
            return REFUSED, "archive/kind", "the event has no signature"
        if not outcome.verified:
            return REFUSED, outcome.code, outcome.message
        if outcome.did != did:
            return REFUSED, "archive/account", f"the frame is of {outcome.did}, the row of {did or 'no account'}"
        if _micros(outcome.rev) > max(received or 0, 0) + self._window_micros:
            return REFUSED, "event/future-rev", f"revision {outcome.rev} is ahead of the time of arrival"
        return PROVED, "verified", None


def _values(batch: Any, name: str) -> list[Any]:
    """The values of a column; times in microseconds since 1970."""
    column = batch.column(batch.schema.get_field_index(name))
    if name != "received":
        return column.to_pylist()
    import pyarrow  # type: ignore

    return column.cast(pyarrow.timestamp("us", "UTC")).cast(pyarrow.int64()).to_pylist()


def _runs(rows: list[int], dids: list[str | None], keys: list[str | None]) -> Iterator[list[int]]:
    """The rows in pieces in which each account has one key, and which fill the lanes of signatures."""
    run: list[int] = []
    of_run: dict[str | None, str | None] = {}
    for row in rows:
        if len(run) == MAX_RUN or of_run.get(dids[row], keys[row]) != keys[row]:
            yield run
            run, of_run = [], {}
        run.append(row)
        of_run[dids[row]] = keys[row]
    if run:
        yield run


def _is_key(key: str) -> bool:
    """Whether a text is a `did:key` of a curve of the AT Protocol: of an empty archive nothing else is wrong."""
    try:
        verify_repo(b"", key)
    except CarError:
        return True
    except ValueError:
        return False
    return False


def _micros(rev: str) -> int:
    """The time of a revision in microseconds since 1970: the upper 53 bits of 13 digits of 5 bits."""
    number = 0
    for digit in rev:
        number = number * 32 + DIGITS.index(digit)
    return number >> 10


DIGITS = "234567abcdefghijklmnopqrstuvwxyz"

#: Rows that are judged together: as many as `archive verify` does.
MAX_RUN = 512

#: Longer than the time that a revision can be ahead: it is compared with the arrival of its own row.
ANY_TIME_SECONDS = 10_000_000_000
