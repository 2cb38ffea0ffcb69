"""A runner of the benchmark: a decoder in plain Python, with nothing but the standard library.

Reads requests on standard input and answers on standard output, one JSON object a line
(bench/runners/PROTOCOL.md). Copy this file to measure a decoder of your own: what is to be replaced is
what `frames.decode` calls.
"""

import gc
import json
import platform
import sys
import time

import dag_cbor
import frames

VARIANTS = {'verified': ['cid-sha256', *dag_cbor.CHECKS], 'unverified': dag_cbor.CHECKS}
COUNTS = (
    'maps map_entries arrays array_items text_bytes byte_string_bytes links integers floats booleans nulls'
).split()


class Runner:
    """What was loaded, and the work over it."""

    def describe(self, request):
        return {
            'engine': 'a decoder written by hand, over the standard library',
            'version': platform.python_version(),
            'language': 'python',
            # Only what the measured path does may stand here.
            'tasks': {'decode': VARIANTS},
        }

    def load(self, request):
        """Reads the corpus into memory. None of the work may be done here."""
        if request['task'] != 'decode' or request['variant'] not in VARIANTS:
            raise ValueError(f'no {request["task"]} {request["variant"]} here')
        self.is_verified = request['variant'] == 'verified'
        self.frames = [frame for path in request['files'] for frame in frames.read_corpus(path)]
        return {'units': len(self.frames), 'bytes': sum(map(len, self.frames))}

    def prove(self, request):
        """Does the work once, and counts what came out: that is how it is known to be the same work."""
        counts = dict.fromkeys(COUNTS, 0) | {'frames': len(self.frames), 'errors': 0, 'blocks': 0}
        for values in self.all_values():
            if values is None:
                counts['errors'] += 1
                continue
            counts['blocks'] += len(values)
            for value in values:
                frames.count(value, counts)
        return {'counts': counts}

    def run_pass(self, request):
        """Does the same work again, and times it alone."""
        gc.collect()
        start = time.monotonic_ns()
        for _ in self.all_values():
            pass
        return {'ns': time.monotonic_ns() - start}

    def all_values(self):
        """The values of each frame, one frame at a time; `None` for a frame that is refused."""
        for frame in self.frames:
            try:
                yield frames.decode(frame, self.is_verified)
            except dag_cbor.Refused:
                yield None


def main():
    runner = Runner()
    commands = {
        'describe': runner.describe,
        'load': runner.load,
        'prove': runner.prove,
        'pass': runner.run_pass,
    }
    for line in sys.stdin:
        try:
            request = json.loads(line)
            answer = commands[request['cmd']](request)
        except Exception as fault:
            answer = {'error': f'{type(fault).__name__}: {fault}'}
        print(json.dumps(answer), flush=True)


if __name__ == '__main__':
    main()
