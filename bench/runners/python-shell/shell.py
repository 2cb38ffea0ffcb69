"""Turns a Python peer into a runner: implements the protocol of ../PROTOCOL.md and times the passes.

What a runner loads is an object with `units`, `bytes`, `prove()` (returns the counts) and `run()` (does the same work without
counting). It may have `stage`, the stage of its task to which the whole time belongs, and `reason`, that of a refused case.
"""

import gc
import json
import sys
import time


def serve(engine, version, checks, loaders):
    """Answers the requests of standard input.

    `checks` has the variants of each task with their checks, `loaders` a function of a variant and paths for each task.
    """
    loaded = None
    for line in sys.stdin:
        try:
            request = json.loads(line)
            cmd = request['cmd']
            if cmd == 'describe':
                answer = {'engine': engine, 'version': version, 'language': 'python', 'tasks': checks}
            elif cmd == 'load':
                loaded = load(request, checks, loaders)
                answer = {'units': loaded.units, 'bytes': loaded.bytes}
            else:
                answer = handle(cmd, loaded)
        except Exception as fault:
            answer = {'error': f'{type(fault).__name__}: {fault}'}
        print(json.dumps(answer), flush=True)


def load(request, checks, loaders):
    task, variant = request['task'], request['variant']
    if variant not in checks.get(task, ()):
        raise ValueError(f'no variant {variant!r} of task {task!r} here')
    return loaders[task](variant, request['files'])


def handle(cmd, loaded):
    if cmd not in ('prove', 'pass'):
        raise ValueError(f'unknown request {cmd!r}')
    if loaded is None:
        raise ValueError('nothing is loaded')
    if cmd == 'pass':
        return time_pass(loaded)
    answer = {'counts': loaded.prove()}
    reason = getattr(loaded, 'reason', None)
    return answer if reason is None else answer | {'reason': reason}


def time_pass(loaded):
    """Starts from a collected heap, so that no pass pays for the garbage of the previous one."""
    gc.collect()
    start = time.monotonic_ns()
    loaded.run()
    ns = time.monotonic_ns() - start
    stage = getattr(loaded, 'stage', None)
    return {'ns': ns} if stage is None else {'ns': ns, 'stages_ns': {stage: ns}}


def log_refusal(index, errors, refusal):
    """Writes the first refusals to the log."""
    if errors <= LOGGED_REFUSALS:
        print(f'unit {index} refused: {refusal}', file=sys.stderr)


LOGGED_REFUSALS = 5
