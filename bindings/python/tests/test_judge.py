"""Frames are judged as the command and the Rust crate judge them."""

from __future__ import annotations

import datetime
import json
import os
import pickle
import subprocess
import threading
from pathlib import Path

import pytest

import wireproof
from wireproof import Judge

DID = "did:web:example.com"


def read(path: Path) -> list[bytes]:
    """The frames of a file: their number, then each after its length."""
    data = path.read_bytes()
    number = int.from_bytes(data[:4], "big")
    frames, at = [], 4
    while len(frames) < number:
        length = int.from_bytes(data[at : at + 4], "big")
        frames.append(data[at + 4 : at + 4 + length])
        at += 4 + length
    assert at == len(data)
    return frames


@pytest.fixture(scope="module")
def keys(frames: Path) -> dict[str, str]:
    return json.loads((frames.parent / "accounts.json").read_text())


@pytest.fixture(scope="module")
def stream(frames: Path) -> list[bytes]:
    return read(frames)


def verified(command: str, frames: Path, keys: dict[str, str]) -> dict:
    """The document of `frames verify --json`."""
    verify = [command, "frames", "verify", str(frames), "--keys", "-", "--json"]
    printed = subprocess.run(verify, input=json.dumps(keys), capture_output=True, text=True)
    assert printed.returncode in (0, 1), printed.stderr
    return json.loads(printed.stdout)


def test_every_generated_commit_is_verified(stream: list[bytes], keys: dict[str, str]) -> None:
    outcomes = Judge(keys).batch(stream)
    assert len(outcomes) == len(stream) == 300
    assert {outcome.code for outcome in outcomes} == {"verified"}
    assert all(outcome.verified and outcome.verdict == "verified" for outcome in outcomes)
    assert {outcome.chain for outcome in outcomes} == {"first-seen", "intact"}
    assert [outcome.seq for outcome in outcomes] == sorted(outcome.seq for outcome in outcomes)
    assert all(outcome.did in keys and outcome.message is None for outcome in outcomes)


def test_operations_have_what_the_frame_says(stream: list[bytes], keys: dict[str, str]) -> None:
    from_python = {name: 0 for name in ("create", "update", "delete")}
    for frame, outcome in zip(stream, Judge(keys).batch(stream)):
        _, payload = wireproof.libipld.decode_dag_cbor_multi(frame)
        assert (outcome.did, outcome.rev, outcome.time) == (payload["repo"], payload["rev"], payload["time"])
        _, blocks = wireproof.libipld.decode_car(payload["blocks"])
        assert len(outcome.ops) == len(payload["ops"])
        for operation, stated in zip(outcome.ops, payload["ops"]):
            assert (operation.action, operation.path) == (stated["action"], stated["path"])
            assert f"{operation.collection}/{operation.rkey}" == operation.path
            from_python[operation.action] += 1
            if operation.action == "delete":
                assert (operation.cid, operation.record, operation.record_bytes) == (None, None, None)
                continue
            assert operation.cid == wireproof.libipld.encode_cid(stated["cid"])
            assert operation.record == blocks[stated["cid"]]
            assert operation.record is operation.record
            assert wireproof.libipld.decode_dag_cbor(operation.record_bytes) == operation.record
    assert all(from_python.values()), "the stream has operations of each kind"


def test_a_batch_has_the_outcomes_of_its_frames_alone(stream: list[bytes], keys: dict[str, str]) -> None:
    whole, single = Judge(keys).batch(stream), Judge(keys)
    assert whole == [single.batch([frame])[0] for frame in stream]
    assert whole == Judge(keys.get).batch(iter(stream))
    # More frames than are judged together.
    assert {outcome.code for outcome in Judge(keys).batch(stream * 4)[300:]} == {"event/stale-rev"}


def test_a_changed_byte_is_refused_and_changes_no_state(stream: list[bytes], keys: dict[str, str]) -> None:
    judge = Judge(keys)
    for at in range(0, len(stream[0]), 97):
        changed = bytearray(stream[0])
        changed[at] ^= 1
        [outcome] = judge.batch([bytes(changed)])
        if not outcome.verified:
            assert outcome.ops == () and outcome.code != "verified"
    [outcome] = Judge(keys).batch([stream[0]])
    assert judge.batch([stream[0]])[0].code in ("verified", "event/stale-rev")
    assert outcome.verified


@pytest.fixture(scope="session")
def hostile(command: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    subprocess.run([command, "corpus", "hostile", "--out", str(folder)], check=True, capture_output=True)
    return folder


def hostile_streams(folder: Path) -> list[dict]:
    """The cases of the hostile set that are frames."""
    cases = json.loads((folder / "hostile.json").read_text())["cases"]
    return [case for case in cases if case["kind"] == "frames"]


def test_hostile_streams_get_the_verdicts_that_the_set_states(hostile: Path) -> None:
    cases = hostile_streams(hostile)
    assert len(cases) > 150
    for case in cases:
        judge = Judge({case["did"]: case["signing_key"]})
        outcomes = judge.batch(read(hostile / case["file"]), now=case["now"])
        codes = {outcome.code for outcome in outcomes if outcome.verdict not in ("verified", "unchecked")}
        if case["code"] in ("event/since", "event/prev-data"):
            # The commit is valid, and another is missing before it.
            assert (codes, outcomes[-1].code, outcomes[-1].chain) == (set(), "verified/broken", "broken"), case["name"]
            continue
        assert codes == ({case["code"]} if case["expect"] == "refuse" else set()), case["name"]
        if case["expect"] == "invalid-record":
            invalid = [operation for operation in outcomes[-1].ops if operation.record is None and operation.cid]
            assert invalid and all(operation.record_bytes is not None for operation in invalid), case["name"]


def test_hostile_streams_get_the_codes_of_the_command(command: str, hostile: Path) -> None:
    for case in hostile_streams(hostile)[::8]:
        path, keys = hostile / case["file"], {case["did"]: case["signing_key"]}
        document = verified(command, path, keys)
        findings = {
            finding["index"]: finding for finding in document["findings"] if not finding["code"].startswith("seq/")
        }
        for index, outcome in enumerate(Judge(keys).batch(read(path))):
            finding = findings.get(index)
            if finding is None:
                assert outcome.verdict in ("verified", "unchecked"), (case["name"], outcome)
            elif outcome.verified:
                assert (outcome.code, outcome.message) == ("verified/broken", finding["message"]), case["name"]
            else:
                stated = (finding["code"], finding["message"], finding["verdict"], finding["did"])
                assert (outcome.code, outcome.message, outcome.verdict, outcome.did) == stated, case["name"]
                assert outcome.ops == ()


def test_a_callable_is_asked_once_for_each_unknown_account(stream: list[bytes], keys: dict[str, str]) -> None:
    asked: list[str] = []

    def key(did: str) -> str | None:
        asked.append(did)
        return keys.get(did)

    judge = Judge(key)
    judge.batch(stream[:150])
    assert sorted(asked) == sorted({outcome.did for outcome in Judge(keys).batch(stream[:150])})
    judge.batch(stream[150:])
    assert sorted(asked) == sorted({outcome.did for outcome in Judge(keys).batch(stream)})


def test_without_a_key_nothing_is_verified_and_the_key_is_asked_for_again(
    stream: list[bytes], keys: dict[str, str]
) -> None:
    known: dict[str, str] = {}
    for judge in (Judge(known), Judge(known.get)):
        known.clear()
        [refused] = judge.batch(stream[:1])
        assert (refused.code, refused.ops) == ("signature/no-key", ())
        known.update(keys)
        assert judge.batch(stream[:1])[0].verified


def test_a_key_that_changes_is_seen(stream: list[bytes], keys: dict[str, str]) -> None:
    [first] = Judge(keys).batch(stream[:1])
    other = next(key for did, key in keys.items() if did != first.did)
    changing = {first.did: other}
    from_callable = Judge(changing.get)
    from_dict = Judge(changing)
    for judge in (from_callable, from_dict):
        changing[first.did] = other
        assert judge.batch(stream[:1])[0].code == "signature/wrong"
        changing[first.did] = keys[first.did]
        assert judge.batch(stream[:1])[0].verified


def test_an_exception_of_the_callable_reaches_the_caller(stream: list[bytes], keys: dict[str, str]) -> None:
    fails = [True]

    def key(did: str) -> str | None:
        if fails[0]:
            raise LookupError(did)
        return keys.get(did)

    judge = Judge(key)
    with pytest.raises(LookupError, match="did:"):
        judge.batch(stream)
    fails[0] = False
    assert all(outcome.verified for outcome in judge.batch(stream)), "nothing was judged before"


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: Judge(7), "keys"),
        (lambda: Judge({}, state=7), "state"),
        (lambda: Judge({}, max_ops="7"), "max_ops"),
        (lambda: Judge({}, max_ops=True), "max_ops"),
        (lambda: Judge({}, accept_rebase=1), "accept_rebase"),
        (lambda: Judge({}, future_window="7"), "future_window"),
        (lambda: Judge({}, accept_everything=True), "accept_everything"),
        (lambda: Judge({}).batch(7), "frames"),
        (lambda: Judge({}).batch(b"frame"), "frames"),
        (lambda: Judge({}).batch([b"", "frame"]), r"frames\[1\]"),
        (lambda: Judge({}).batch([bytearray(b"frame")]), r"frames\[0\]"),
        (lambda: Judge({}).batch([], now=[]), "now"),
        (lambda: Judge({}).state().rev(7), "did"),
        (lambda: Judge({}).state().is_active(b"did:web:example.com"), "did"),
        (lambda: Judge({}).state().set_active(DID, 1), "active"),
        (lambda: Judge({}).state().save(7), "cursors"),
        (lambda: Judge({}).state().cursor(7), "stream"),
    ],
)
def test_a_wrong_type_is_named(call, argument: str) -> None:
    with pytest.raises(TypeError, match=f"^argument '{argument}': "):
        call()


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: Judge({}, max_ops=-1), "max_ops"),
        (lambda: Judge({}, max_ops=2**64), "max_ops"),
        (lambda: Judge({}, future_window=-1.0), "future_window"),
        (lambda: Judge({}).batch([], now="yesterday"), "now"),
        (lambda: Judge({}).batch([], now=-1), "now"),
        (lambda: Judge({}).batch([], now=datetime.datetime(2026, 7, 1)), "now"),
        (lambda: Judge({}).state().save({"wss://relay.example.com": 1}), "cursors"),
    ],
)
def test_a_wrong_value_is_named(call, argument: str) -> None:
    with pytest.raises(ValueError, match=f"^argument '{argument}': "):
        call()


def test_keys_of_a_wrong_type_or_form_are_named(stream: list[bytes]) -> None:
    for answer, error in ((7, TypeError), (b"did:key:z", TypeError), ("z", ValueError)):
        with pytest.raises(error, match="^argument 'keys': .*did:"):
            Judge(lambda did: answer).batch(stream[:1])


def test_the_time_is_that_of_the_argument(stream: list[bytes], keys: dict[str, str]) -> None:
    early = datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc)
    for now in (early, "2020-01-01T00:00:00Z", int(early.timestamp()) * 1_000_000):
        assert {outcome.code for outcome in Judge(keys).batch(stream, now=now)} == {"event/future-rev"}
    later = datetime.datetime(2030, 1, 1, tzinfo=datetime.timezone.utc)
    assert all(outcome.verified for outcome in Judge(keys).batch(stream, now=later))
    lenient = Judge(keys, future_window=20 * 366 * 86_400)
    assert all(outcome.verified for outcome in lenient.batch(stream, now=early))


def test_options_are_limits(stream: list[bytes], keys: dict[str, str]) -> None:
    assert {outcome.code for outcome in Judge(keys, max_frame_bytes=10).batch(stream)} == {"frame/limit"}
    assert not any(outcome.verified for outcome in Judge(keys, max_ops=0).batch(stream))
    unproved = Judge(keys, accept_unproved_operations=True).batch(stream)
    assert "verified/unproved" in {outcome.code for outcome in unproved}


def test_outcomes_and_operations_are_immutable_and_can_be_pickled(stream: list[bytes], keys: dict[str, str]) -> None:
    refused = Judge({}).batch([stream[0], b"not a frame"])
    for outcome in Judge(keys).batch(stream[:20]) + refused:
        copy = pickle.loads(pickle.dumps(outcome))
        assert copy == outcome and hash(copy) == hash(outcome) and repr(copy) == repr(outcome)
        assert copy.message == outcome.message and copy.chain == outcome.chain
        assert [operation.record for operation in copy.ops] == [operation.record for operation in outcome.ops]
        with pytest.raises(AttributeError):
            outcome.code = "verified"
        for operation in outcome.ops:
            copied = pickle.loads(pickle.dumps(operation))
            assert copied == operation and hash(copied) == hash(operation) and copied.record == operation.record
            with pytest.raises(AttributeError):
                operation.record = None
    assert refused[0] != refused[1]


def test_judges_with_one_state_continue_each_other(stream: list[bytes], keys: dict[str, str]) -> None:
    first = Judge(keys)
    first.batch(stream[:150])
    second = Judge(keys, first.state())
    outcomes = second.batch(stream[150:])
    alone = Judge(keys).batch(stream)[150:]
    assert outcomes == alone
    assert second.state().rev(outcomes[-1].did) == outcomes[-1].rev
    assert {outcome.code for outcome in first.batch(stream)} == {"event/stale-rev"}


def test_after_a_clear_every_commit_is_the_first_of_its_account_again(
    stream: list[bytes], keys: dict[str, str], tmp_path: Path
) -> None:
    judge = Judge(keys)
    outcomes = judge.batch(stream)
    judge.state().clear()
    assert judge.state().rev(outcomes[-1].did) is None
    assert judge.batch(stream) == outcomes
    with pytest.raises(ValueError, match="in a file"):
        Judge(keys, tmp_path / "state.sqlite").state().clear()


def test_a_state_file_has_what_was_saved(stream: list[bytes], keys: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    judge = Judge(keys, path)
    judge.batch(stream[:100])
    judge.state().save({"wss://relay.example.com": 7})
    judge.batch(stream[100:])
    with pytest.raises(OSError, match="state.sqlite"):
        Judge(keys, str(path))
    del judge
    again = Judge(keys, str(path))
    assert again.state().cursor("wss://relay.example.com") == 7
    outcomes = again.batch(stream)
    assert {outcome.code for outcome in outcomes[:100]} == {"event/stale-rev"}
    assert all(outcome.verified for outcome in outcomes[100:])


def test_a_state_file_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    path.write_bytes(b"not a state file, but long enough to be read as one " * 40)
    with pytest.raises(OSError, match="state.sqlite"):
        Judge({}, path)


def test_an_inactive_account_is_ignored(stream: list[bytes], keys: dict[str, str]) -> None:
    judge = Judge(keys)
    [first] = Judge(keys).batch(stream[:1])
    judge.state().set_active(first.did, False)
    [ignored] = judge.batch(stream[:1])
    assert (ignored.code, ignored.verdict) == ("event/inactive", "ignored")
    judge.state().set_active(first.did, True)
    assert judge.batch(stream[:1])[0].verified


def account(did: str, active: bool) -> bytes:
    encode = wireproof.libipld.encode_dag_cbor
    payload = {"seq": 1, "did": did, "time": "2026-07-01T00:00:00Z", "active": active}
    return encode({"op": 1, "t": "#account"}) + encode(payload)


def test_an_account_event_decides_about_the_commits_after_it(stream: list[bytes], keys: dict[str, str]) -> None:
    [first] = Judge(keys).batch(stream[:1])
    frames = [account(first.did, False), stream[0], account(first.did, True), stream[0]]
    codes = [outcome.code for outcome in Judge(keys).batch(frames)]
    assert codes == ["unchecked", "event/inactive", "unchecked", "verified"]
    assert Judge({}).batch([account(DID, False)])[0].code == "unchecked"


def test_threads_judge_with_their_own_judges(stream: list[bytes], keys: dict[str, str]) -> None:
    expected, found = Judge(keys).batch(stream), {}

    def work(number: int) -> None:
        judge = Judge(keys)
        found[number] = [outcome for at in range(0, 300, 30) for outcome in judge.batch(stream[at : at + 30])]

    workers = [threading.Thread(target=work, args=[number]) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert all(found[number] == expected for number in range(4))


def test_threads_share_a_judge(stream: list[bytes], keys: dict[str, str]) -> None:
    judge, codes = Judge(keys.get), []
    workers = [threading.Thread(target=lambda: codes.extend(judge.batch(stream))) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sum(outcome.verified for outcome in codes) == 300
    assert len(codes) == 1200


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_child_judges_and_leaves_the_state_file_alone(
    stream: list[bytes], keys: dict[str, str], tmp_path: Path
) -> None:
    in_file, in_memory = Judge(keys, tmp_path / "state.sqlite"), Judge(keys)
    in_file.batch(stream[:10])
    child = os.fork()
    if child == 0:
        try:
            in_file.batch(stream)
        except RuntimeError as error:
            is_right = "forked" in str(error) and all(outcome.verified for outcome in in_memory.batch(stream))
            del in_file
            os._exit(0 if is_right else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert all(outcome.verified for outcome in in_file.batch(stream[10:]))
    in_file.state().save()
