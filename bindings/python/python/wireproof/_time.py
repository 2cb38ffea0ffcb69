"""Times as arguments."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone

Time = datetime | date | str | int

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)


def to_micros(argument: str, value: Time | None) -> int | None:
    """The microseconds since 1970 of a time: a `datetime` with a time zone, a `date` (its start in UTC), such a text in ISO 8601, or
    microseconds as `int`."""
    if value is None:
        return None
    if isinstance(value, bool):
        raise _type_error(argument, value)
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise ValueError(f"argument '{argument}': {value} microseconds are out of range")
        return value
    if isinstance(value, str):
        value = _parse(argument, value)
    if isinstance(value, datetime):
        if value.utcoffset() is None:
            raise ValueError(f"argument '{argument}': {value} has no time zone; datetime.timezone.utc is one")
        return (value - _EPOCH) // _MICROSECOND
    if isinstance(value, date):
        return (datetime(value.year, value.month, value.day, tzinfo=timezone.utc) - _EPOCH) // _MICROSECOND
    raise _type_error(argument, value)


def _parse(argument: str, text: str) -> datetime | date:
    try:
        if len(text) == len("2026-11-24"):
            return date.fromisoformat(text)
        # Before Python 3.11 `Z` is not read.
        return datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith(("Z", "z")) else text)
    except ValueError:
        raise ValueError(f"argument '{argument}': {text!r} is not a time in ISO 8601") from None


def _type_error(argument: str, value: object) -> TypeError:
    return TypeError(f"argument '{argument}': expected datetime, date, str or int, not {type(value).__name__}")
