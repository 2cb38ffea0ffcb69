"""Reads Jetstream version 2 with the SDK of Python, checked against its models: jetstream.py SERVICE OPTIONS"""

import json
import sys

from atproto import JetstreamClient
from atproto_jetstream.exceptions import JetstreamCursorTooOldError

from output import write, write_error


def write_event(event):
    if client.compressed != options["compress"]:
        raise ValueError("the stream is not compressed as requested")
    kind = event.py_type.rpartition("#")[2]
    head = {"kind": kind, "seq": getattr(event, "seq", None), "did": getattr(event, "did", None)}
    if kind == "commit":
        # Not the record: its model adds fields that are not in it.
        write(**head, rev=event.rev, path=f"{event.collection}/{event.rkey}", cid=event.cid)
    elif kind == "sync":
        write(**head, rev=event.sync.rev)
    elif kind == "account":
        write(**head, active=event.account.active, status=event.account.status)
    else:
        write(**head, name=getattr(event, "name", None))


service, text = sys.argv[1:]
options = json.loads(text)
params = {key: options[key] for key in ("cursor", "kinds", "collections", "dids") if options.get(key)}
client = JetstreamClient(params, f"{service}/xrpc", compress=options["compress"])
try:
    client.start(write_event, write_error)
except JetstreamCursorTooOldError:
    write(kind="refusal", name="CursorTooOld")
except Exception as error:
    write_error(error)
