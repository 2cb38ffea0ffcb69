"""Types of arguments, for annotations."""

from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Any

Time = datetime | date | str | int

Keys = Mapping[str, str | None] | Callable[[str], str | None] | Callable[[list[str]], Any]
