"""Reads labels with the SDK of Python, checked against its models: labels.py SERVICE CURSOR"""

import sys

from atproto import FirehoseSubscribeLabelsClient, models, parse_subscribe_labels_message

from output import write


def write_message(message):
    event = parse_subscribe_labels_message(message)
    if isinstance(event, models.ComAtprotoLabelSubscribeLabels.Labels):
        write(kind="labels", seq=event.seq, labels=len(event.labels))
        client.update_params({"cursor": event.seq})


def note(error):
    """A message that is refused is not written."""
    print(repr(error), file=sys.stderr)


service, cursor = sys.argv[1:]
client = FirehoseSubscribeLabelsClient({"cursor": int(cursor)}, f"{service}/xrpc")
client.start(write_message, note)
