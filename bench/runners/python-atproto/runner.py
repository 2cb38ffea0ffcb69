"""Turns the Python peer into a runner: implements the protocol of ../PROTOCOL.md and times the passes.
Measuring and counting are in work.py, the calls of the peer in decode.py and sigs.py.

There is no task `hostile` here: the SDK reads a repository with CAR.from_bytes, which hashes nothing, and has no call
that verifies a commit, a tree or a repository.
"""

import gc
import json
import sys
import time

import decode
import sigs
import work


def main():
    loaded = None
    for line in sys.stdin:
        try:
            request = json.loads(line)
            if request['cmd'] == 'load':
                loaded = load(request)
            answer = obey(request['cmd'], loaded)
        except Exception as fault:
            answer = {'error': f'{type(fault).__name__}: {fault}'}
        print(json.dumps(answer), flush=True)


def obey(cmd, loaded):
    if cmd == 'describe':
        return describe()
    if cmd not in ('load', 'prove', 'pass'):
        raise ValueError(f'unknown request {cmd!r}')
    if loaded is None:
        raise ValueError('nothing is loaded')
    if cmd == 'load':
        return {'units': loaded.units, 'bytes': loaded.bytes}
    if cmd == 'prove':
        return {'counts': loaded.prove()}
    return {'ns': time_pass(loaded)}


def load(request):
    task, variant = request['task'], request['variant']
    if variant not in CHECKS.get(task, ()):
        raise ValueError(f'no variant {variant!r} of task {task!r} here')
    return work.KINDS[task](variant, request['files'])


def describe():
    engine = f'{decode.ENGINE}; {sigs.ENGINE}'
    return {'engine': engine, 'version': decode.VERSION, 'language': 'python', 'tasks': CHECKS}


def time_pass(loaded):
    """Starts from a collected heap, so that no pass pays for the garbage of the previous one."""
    gc.collect()
    start = time.monotonic_ns()
    loaded.run()
    return time.monotonic_ns() - start


CHECKS = {'decode': decode.CHECKS, 'sigs': sigs.VARIANTS}

if __name__ == '__main__':
    main()
