"""Reads the hosted archive of a Jetstream with jetstream-lakehouse, and prints every event as a line of JSON.

Usage: read.py ORIGIN
"""

import json
import sys

from jetstream_lakehouse import Config
from jetstream_lakehouse.reader import Reader


class LoopbackConfig(Config):
    """Settings for a server on this machine, which has no certificate."""

    def validate(self):
        return self


def main():
    reader = Reader(LoopbackConfig(endpoint=sys.argv[1], max_sequence_span=500))
    tip, after = reader.sealed_tip(0), 0
    while after < tip:
        batch = reader.read_batch(after, min(after + 500, tip))
        for event in batch.events:
            print(json.dumps(event.as_dict()))
        after = batch.through_seq
    print(json.dumps({"tip": tip}))


main()
