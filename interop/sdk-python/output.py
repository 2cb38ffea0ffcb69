"""The output of a reader: one JSON object a line."""

import json
import sys


def write(**event):
    print(json.dumps({key: value for key, value in event.items() if value is not None}), flush=True)


def write_error(error):
    """An error is written like an event; tests expect none."""
    print(repr(error), file=sys.stderr)
    write(kind="error", message=repr(error))
