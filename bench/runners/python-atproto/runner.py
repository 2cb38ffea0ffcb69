"""Turns the Python peer into a runner: speaks the protocol of ../PROTOCOL.md, splits the corpus, holds
the clock and adds up the counts. What the peer itself does is in decode.py."""

import gc
import json
import struct
import sys
import time
from collections import Counter
from pathlib import Path

import decode

TOLD_REFUSALS = 5


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
    decode_frame, frames = loaded
    if cmd == 'load':
        return {'units': len(frames), 'bytes': sum(map(len, frames))}
    if cmd == 'prove':
        return {'counts': prove(decode_frame, frames)}
    return {'ns': time_pass(decode_frame, frames)}


def load(request):
    task, variant = request['task'], request['variant']
    if task != 'decode' or variant not in decode.VARIANTS:
        raise ValueError(f'no variant {variant!r} of task {task!r} here')
    return decode.VARIANTS[variant], [frame for path in request['files'] for frame in read_frames(path)]


def describe():
    tasks = {'decode': {variant: decode.CHECKS for variant in decode.VARIANTS}}
    return {'engine': decode.ENGINE, 'version': decode.VERSION, 'language': 'python', 'tasks': tasks}


def prove(decode_frame, frames):
    counts = Counter(dict.fromkeys(decode.COUNTS, 0), frames=len(frames), errors=0)
    for index, frame in enumerate(frames):
        try:
            counts.update(decode.count(decode_frame(frame)))
        except Exception as refusal:
            counts['errors'] += 1
            if counts['errors'] <= TOLD_REFUSALS:
                print(f'frame {index} refused: {refusal}', file=sys.stderr)
    return counts


def time_pass(decode_frame, frames):
    """Starts from a collected heap, so that no pass pays for the garbage of the one before."""
    gc.collect()
    start = time.monotonic_ns()
    run(decode_frame, frames)
    return time.monotonic_ns() - start


def run(decode_frame, frames):
    """Keeps each frame's values until the next frame's are there; the interpreter leaves nothing out."""
    values = None
    for frame in frames:
        try:
            values = decode_frame(frame)
        except Exception:
            values = None  # counted by `prove`
    del values


def read_frames(path):
    """[u32 BE count], then [u32 BE length][frame] for each."""
    file = Path(path).read_bytes()
    (count,) = struct.unpack_from('>I', file)
    offset = 4
    for _ in range(count):
        (length,) = struct.unpack_from('>I', file, offset)
        offset += 4 + length
        if offset > len(file):
            raise ValueError(f'{path}: ends inside a frame')
        yield file[offset - length : offset]
    if offset != len(file):
        raise ValueError(f'{path}: bytes after the last frame')


if __name__ == '__main__':
    main()
