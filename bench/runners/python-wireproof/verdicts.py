"""Verifies frames with `Judge`, and repositories with `verify_repo`."""

import json
from collections import Counter
from datetime import datetime, timedelta, timezone
from pathlib import Path

import decode
from corpora import read_frames
from wireproof import Judge, WireproofError, verify_repo
from wireproof.libipld import decode_dag_cbor_multi


class Commits:
    """The task `commit`. The state is empty before each pass, and keys stay prepared."""

    def __init__(self, variant, files):
        *frames, accounts = files
        self.frames = [frame for path in frames for frame in read_frames(path)]
        self.judge = Judge(json.loads(Path(accounts).read_text()))
        self.now = day_after_newest(self.frames)
        self.batch = BATCHES[variant]
        self.units = len(self.frames)
        self.bytes = sum(map(len, self.frames))

    def judged(self):
        """The outcomes of each call."""
        self.judge.state().clear()
        for start in range(0, len(self.frames), self.batch):
            yield self.judge.batch(self.frames[start : start + self.batch], self.now)

    def prove(self):
        counts = Counter(dict.fromkeys(('commits', 'ops', 'refused', *CHAINS.values()), 0), frames=self.units)
        outcomes = (outcome for outcomes in self.judged() for outcome in outcomes)
        for frame, outcome in zip(self.frames, outcomes, strict=True):
            # A commit that cannot be decoded is of no kind.
            if COMMIT not in frame[:HEADER_LEN]:
                continue
            counts['commits'] += 1
            counts['ops'] += len(outcome.ops)
            counts[CHAINS[outcome.chain] if outcome.verified else 'refused'] += 1
        return counts

    def run(self):
        for _ in self.judged():
            pass


class Repository:
    """The task `repo`. One call does all stages."""

    stage = 'parse'

    def __init__(self, variant, files):
        car, owner = map(Path, files)
        self.car, owner = car.read_bytes(), json.loads(owner.read_text())
        self.did, self.key = owner['did'], owner['signing_key']
        self.units, self.bytes = 1, len(self.car)

    def prove(self):
        repository = verify_repo(self.car, self.key, did=self.did)
        counts = {'repositories': 1, 'records': 0, 'record_bytes': 0, 'valid': 1}
        for record in repository:
            counts['records'] += 1
            counts['record_bytes'] += len(record.bytes)
        if repository.invalid_records:
            counts['invalid_records'] = repository.invalid_records
        return counts

    def run(self):
        verify_repo(self.car, self.key, did=self.did)


class Case:
    """The task `hostile`."""

    def __init__(self, variant, files):
        self.path, owner = files
        self.verify = {'repo': self.verify_repo, 'frames': self.verify_frames}[variant]
        self.owner = json.loads(Path(owner).read_text())
        self.units, self.bytes = 1, Path(self.path).stat().st_size
        self.reason = None

    def prove(self):
        self.reason = self.verify()
        is_refused = self.reason is not None
        return {'accepted': int(not is_refused), 'refused': int(is_refused)}

    def run(self):
        self.verify()

    def verify_repo(self):
        try:
            verify_repo(Path(self.path), self.owner['signing_key'], did=self.owner['did'])
        except WireproofError as refusal:
            return f'{refusal.code}: {refusal}'

    def verify_frames(self):
        """The verdict of the last frame. A gap before a commit is a refusal, because its changes are to be applied."""
        frames = list(read_frames(self.path))
        now = self.owner.get('now') or day_after_newest(frames)
        outcome = Judge({self.owner['did']: self.owner['signing_key']}).batch(frames, now)[-1]
        has_gap = outcome.kind == 'commit' and outcome.chain == 'broken'
        if not outcome.verified or has_gap:
            return f'{outcome.code}: {outcome.message}'


def day_after_newest(frames):
    times = filter(None, map(time_of, frames))
    return max(times, default=datetime.fromtimestamp(0, timezone.utc)) + timedelta(days=1)


def time_of(frame):
    try:
        _, payload = decode_dag_cbor_multi(frame)
        return datetime.fromisoformat(payload['time'].replace('Z', '+00:00'))
    except (ValueError, KeyError):
        return None


# The type in the header of a frame, whose length is that of `{"op": 1, "t": "#commit"}`.
COMMIT, HEADER_LEN = b'#commit', 15

BATCHES = {'full': 1, 'full/batch': 256}

CHAINS = {
    'intact': 'accepted',
    'unproved': 'accepted',
    'first-seen': 'first_sighting',
    'broken': 'chain_broken',
    'still-desynchronized': 'chain_broken',
}

VERIFIED = decode.CHECKS['verified']
OF_TREES = ['low-s', 'mst-order', 'mst-layer', 'mst-prefix', 'mst-shape', 'record-path']
OF_COMMITS = [*VERIFIED, *OF_TREES, 'event-fields', 'op-records', 'inversion', 'chain', 'clock']
OF_REPOSITORIES = [*VERIFIED, *OF_TREES, 'mst-once', 'complete', 'record-cbor']

CHECKS = {
    'commit': dict.fromkeys(BATCHES, OF_COMMITS),
    'repo': {'total': OF_REPOSITORIES},
    'hostile': {'repo': OF_REPOSITORIES, 'frames': OF_COMMITS},
}
LOADERS = {'commit': Commits, 'repo': Repository, 'hostile': Case}
