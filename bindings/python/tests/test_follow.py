"""Streams are followed: every event, in order, until it is acknowledged, and nothing is left at the end."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from network import Network, assert_no_thread_is_left, start, threads

import wireproof

COMMITS = 400


@pytest.fixture(scope="module")
def network(command: str) -> Iterator[Network]:
    """A relay with a number of events, to which none is added."""
    network = start(command, "--accounts", "8", "--prepared", str(COMMITS), "--rate", "none")
    yield network
    network.end()


def follow(network: Network, **options) -> wireproof.Follow:
    return wireproof.follow(network.relay, cursor="oldest", **network.options, **options)


def take(events: wireproof.Follow, number: int) -> list[wireproof.Event]:
    return [next(events) for _ in range(number)]


async def take_async(events: wireproof.Follow, number: int) -> list[wireproof.Event]:
    return [await anext(events) for _ in range(number)]


def key(event: wireproof.Event) -> tuple:
    return (event.seq, event.did, event.rev, event.code)


def by_account(events: list[wireproof.Event]) -> dict[str | None, list[int]]:
    seqs = defaultdict(list)
    for event in events:
        seqs[event.did].append(event.seq)
    return seqs


@pytest.fixture(scope="module")
def sent(network: Network) -> list[wireproof.Event]:
    """All events of the relay."""
    with follow(network) as events:
        return take(events, COMMITS)


def test_every_event_is_delivered_verified_and_in_the_order_of_its_account(
    network: Network, sent: list[wireproof.Event]
) -> None:
    with follow(network) as events:
        received = take(events, COMMITS)
        assert events.waiting == 0
    assert len({event.seq for event in received}) == COMMITS
    assert {(event.code, event.verified, event.kind) for event in received} == {("verified", True, "commit")}
    assert all(seqs == sorted(seqs) for seqs in by_account(received).values())
    assert {key(event) for event in received} == {key(event) for event in sent}
    assert all(event.host == network.relay and time.time() - event.received < 60 for event in received)


def test_a_judge_finds_the_same_about_the_frames(network: Network, sent: list[wireproof.Event]) -> None:
    in_order = sorted(sent, key=lambda event: event.seq)
    judge = wireproof.Judge(lambda did: wireproof.resolve(did, **network.options).signing_key)
    outcomes = judge.batch([event.frame for event in in_order])
    for event, outcome in zip(in_order, outcomes, strict=True):
        assert isinstance(event, wireproof.Outcome)
        assert (event.code, event.seq, event.did, event.rev, event.chain, event.time) == (
            outcome.code,
            outcome.seq,
            outcome.did,
            outcome.rev,
            outcome.chain,
            outcome.time,
        )
        assert event.ops == outcome.ops


def test_asyncio_gets_the_same_events(network: Network, sent: list[wireproof.Event]) -> None:
    async def received() -> list[wireproof.Event]:
        async with follow(network) as events:
            return await take_async(events, COMMITS)

    before = threads()
    assert {key(event) for event in asyncio.run(received())} == {key(event) for event in sent}
    assert_no_thread_is_left(before)


def test_other_tasks_run_while_events_are_waited_for_and_taken(network: Network) -> None:
    async def turns() -> tuple[int, int]:
        counted, is_done = 0, False

        async def count() -> None:
            nonlocal counted
            while not is_done:
                counted += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(count())
        async with follow(network) as events:
            await take_async(events, COMMITS)
            during = counted
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(anext(events), 0.2)
            # A wait that timed out does not end the stream.
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(anext(events), 0.05)
        is_done = True
        await counting
        return during, counted

    during, counted = asyncio.run(turns())
    assert during >= COMMITS // 64 and counted > during


def test_waiting_uses_no_processor_time_in_asyncio(network: Network) -> None:
    async def idle() -> float:
        async with follow(network) as events:
            await take_async(events, COMMITS)
            started = time.thread_time()
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(anext(events), 1.0)
            return time.thread_time() - started

    assert asyncio.run(idle()) < 0.1


def test_unacknowledged_events_come_again_and_acknowledged_ones_do_not(
    network: Network, sent: list[wireproof.Event], tmp_path: Path
) -> None:
    state = tmp_path / "state.sqlite"
    with follow(network, state=state) as events:
        first = take(events, COMMITS)
        assert events.unacknowledged == COMMITS
    with follow(network, state=state) as events:
        again = take(events, COMMITS)
        assert {key(event) for event in again} == {key(event) for event in first} == {key(event) for event in sent}
        again.sort(key=lambda event: event.seq)
        done, left = again[: COMMITS // 2], again[COMMITS // 2 :]
        assert all(event.ack() and event.ack() for event in done)
        assert events.unacknowledged == len(left)
    assert not any(event.ack() for event in left), "the run has ended"
    with follow(network, state=state) as events:
        missing = {event.seq for event in left}
        for event in events:
            missing.discard(event.seq)
            event.ack()
            if not missing and not events.waiting:
                break
    assert_all_is_acknowledged(network, state)


def assert_all_is_acknowledged(network: Network, state: Path) -> None:
    """A run with the state receives nothing, whose end another thread causes."""
    with follow(network, state=state) as events:
        received: list[wireproof.Event] = []
        worker = threading.Thread(target=lambda: received.extend(events))
        worker.start()
        time.sleep(0.5)
        assert events.unacknowledged == len(received) == 0
        events.close()
        worker.join(5)
        assert not worker.is_alive()


def test_a_state_file_is_free_as_soon_as_the_stream_is_closed(network: Network, tmp_path: Path) -> None:
    state = tmp_path / "state.sqlite"
    for _ in range(5):
        with follow(network, state=state) as events:
            take(events, 3)
            with pytest.raises(OSError, match="state.sqlite"):
                next(follow(network, state=state))


def test_automatic_acknowledgements_are_one_event_behind(network: Network, tmp_path: Path) -> None:
    state = tmp_path / "state.sqlite"
    with follow(network, state=state, auto_ack=True, workers=1) as events:
        taken = [event.seq for event in take(events, COMMITS)]
        assert events.unacknowledged == 1
    # Acknowledgements are stored by batch, so those received together with the last event come again with it: even all.
    with follow(network, state=state, auto_ack=True, workers=1) as events:
        again: list[int] = []
        while taken[-1] not in again:
            again.append(next(events).seq)
        assert set(again) <= set(taken) and len(again) == len(set(again))


def test_the_queue_is_bounded(network: Network) -> None:
    with follow(network, queue=7) as events:
        deadline = time.monotonic() + 5
        while events.waiting < 7 and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.2)
        assert events.waiting == 7 and events.unacknowledged == 7
        # Nothing was lost.
        assert len({event.seq for event in take(events, COMMITS)}) == COMMITS


def test_unacknowledged_events_are_bounded(
    network: Network, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def timed_out(events: wireproof.Follow) -> bool:
        try:
            await asyncio.wait_for(anext(events), 0.3)
        except asyncio.TimeoutError:
            return True
        return False

    with follow(network, state=tmp_path / "state.sqlite", in_flight=20) as events:
        received = take(events, 20)
        assert asyncio.run(timed_out(events)) and asyncio.run(timed_out(events))
        assert events.waiting == 0 and events.unacknowledged == 20
        assert caplog.text.count("20 events are not acknowledged") == 1
        for event in received:
            event.ack()
        assert next(events).seq not in {event.seq for event in received}


def test_a_closed_stream_ends_iteration_and_leaves_no_thread(network: Network) -> None:
    before, python = threads(), threading.active_count()
    events = follow(network, queue=5)
    take(events, 10)
    assert threads() > before
    started = time.monotonic()
    events.close()
    events.close()
    assert time.monotonic() - started < 3
    assert list(events) == []
    assert_no_thread_is_left(before)
    assert threading.active_count() == python


def test_an_exception_in_the_block_closes_the_stream(network: Network) -> None:
    before = threads()
    with pytest.raises(LookupError), follow(network) as events:
        for event in events:
            raise LookupError(event.seq)
    assert list(events) == []
    assert_no_thread_is_left(before)


def test_a_dropped_stream_leaves_no_thread(network: Network) -> None:
    before = threads()
    for event in follow(network):
        assert event.verified
        break
    assert_no_thread_is_left(before)


def test_a_cancelled_task_closes_the_stream_and_stores_what_is_acknowledged(network: Network, tmp_path: Path) -> None:
    state = tmp_path / "state.sqlite"

    async def cancelled() -> list[wireproof.Event]:
        received = []

        async def work() -> None:
            async with follow(network, state=state) as events:
                async for event in events:
                    received.append(event)
                    event.ack()

        task = asyncio.create_task(work())
        while len(received) < COMMITS:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return received

    before = threads()
    received = asyncio.run(cancelled())
    assert len(received) == COMMITS
    assert_no_thread_is_left(before)
    assert_all_is_acknowledged(network, state)


def test_tasks_share_a_stream(network: Network) -> None:
    async def received() -> list[int]:
        async with follow(network) as events:
            seqs: list[int] = []

            async def work() -> None:
                while len(seqs) < COMMITS:
                    seqs.append((await anext(events)).seq)

            workers = [asyncio.create_task(work()) for _ in range(4)]
            done, others = await asyncio.wait(workers, return_when=asyncio.FIRST_COMPLETED)
            for other in others:
                other.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            return seqs

    assert len(set(asyncio.run(received()))) == COMMITS


PROGRAM = """
import signal, sys, wireproof
signal.signal(signal.SIGINT, signal.default_int_handler)
relay, plc, port, state, options = sys.argv[1:]
options = eval(options)
with wireproof.follow(relay, plc=plc, development_port=int(port), state=state, **options) as events:
    try:
        for number, event in enumerate(events, 1):
            event.ack()
            if number == {events}:
                print("ready", flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        raise
"""


# SIGINT is set to its default, as a shell starts programs in the background with SIGINT ignored.
def run_program(network: Network, state: Path, program: str = PROGRAM) -> subprocess.Popen[str]:
    arguments = [network.relay, network.options["plc"], str(network.options["development_port"]), str(state)]
    program = program.replace("{events}", str(COMMITS))
    command = [sys.executable, "-c", program, *arguments, "{'cursor': 'oldest'}"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_ctrl_c_ends_the_wait_and_stores_what_is_acknowledged(network: Network, tmp_path: Path) -> None:
    state = tmp_path / "state.sqlite"
    process = run_program(network, state)
    assert process.stdout and process.stdout.readline() == "ready\n"
    time.sleep(0.3)
    started = time.monotonic()
    os.kill(process.pid, signal.SIGINT)
    printed, errors = process.communicate(timeout=10)
    assert time.monotonic() - started < 5
    assert printed == "interrupted\n" and errors.rstrip().endswith("KeyboardInterrupt")
    assert_all_is_acknowledged(network, state)


def test_ctrl_c_ends_a_program_with_asyncio(network: Network, tmp_path: Path) -> None:
    state = tmp_path / "state.sqlite"
    program = """
import asyncio, os, signal, sys, wireproof
signal.signal(signal.SIGINT, signal.default_int_handler)
relay, plc, port, state, options = sys.argv[1:]
async def main():
    async with wireproof.follow(relay, plc=plc, development_port=int(port), state=state, **eval(options)) as events:
        for number in range({events}):
            (await anext(events)).ack()
        print("ready", flush=True)
        await anext(events)
try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    process = run_program(network, state, program)
    assert process.stdout and process.stdout.readline() == "ready\n"
    time.sleep(0.3)
    os.kill(process.pid, signal.SIGINT)
    printed, errors = process.communicate(timeout=10)
    assert (printed, errors) == ("interrupted\n", "")
    assert_all_is_acknowledged(network, state)


def test_a_program_that_ends_without_closing_stores_what_is_acknowledged(network: Network, tmp_path: Path) -> None:
    state = tmp_path / "state.sqlite"
    program = """
import sys, wireproof
relay, plc, port, state, options = sys.argv[1:]
events = wireproof.follow(relay, plc=plc, development_port=int(port), state=state, **eval(options))
for _ in range({events}):
    next(events).ack()
"""
    process = run_program(network, state, program)
    printed, errors = process.communicate(timeout=20)
    assert (process.returncode, printed, errors) == (0, "", "")
    assert_all_is_acknowledged(network, state)


def test_collections_and_accounts_select(network: Network, sent: list[wireproof.Event]) -> None:
    collection = sent[0].ops[0].collection
    paths = {operation.path for event in sent for operation in event.ops if operation.collection == collection}
    expected = [event for event in sent if any(operation.path in paths for operation in event.ops)]
    with follow(network, collections=[collection]) as events:
        selected = take(events, len(expected))
        assert {operation.path for event in selected for operation in event.ops} == paths
    account = network.accounts[0]
    expected = [event for event in sent if event.did == account["did"]]
    for name in (account["did"], account["handle"]):
        with follow(network, dids=[name]) as events:
            assert [event.seq for event in take(events, len(expected))] == [event.seq for event in expected]
    prefix = collection.rsplit(".", 1)[0] + ".*"
    with follow(network, collections=prefix) as events:
        assert next(events).ops[0].path.startswith(prefix[:-1])


def test_a_cursor_is_where_the_stream_starts(network: Network, sent: list[wireproof.Event]) -> None:
    seqs = sorted(event.seq for event in sent)
    with wireproof.follow([network.relay], cursor=seqs[300], **network.options) as events:
        assert sorted(event.seq for event in take(events, 99)) == seqs[301:]


def test_a_missed_event_brings_the_repository(command: str, tmp_path: Path) -> None:
    network = start(command, "--accounts", "2", "--pds", "1", "--prepared", "60", "--rate", "none")
    try:
        with follow(network) as events:
            sent = sorted(take(events, 60), key=lambda event: event.seq)
        did, state = sent[0].did, tmp_path / "state.sqlite"
        seqs = [event.seq for event in sent if event.did == did]
        # A state of the account's third event, and a cursor after its fourth.
        keys = {account["did"]: account["signing_key"] for account in network.accounts}
        judge = wireproof.Judge(keys, state)
        judge.batch([event.frame for event in sent if event.seq <= seqs[2]])
        stream = network.relay.replace("http", "ws") + "/xrpc/com.atproto.sync.subscribeRepos"
        judge.state().save({stream: seqs[3]})
        del judge
        with follow(network, state=state, resync=True) as events:
            fetched = next(event for event in events if event.kind == "resync")
        assert (fetched.did, fetched.code, fetched.verified) == (did, "verified", True)
        repo = wireproof.verify_repo(fetched.frame, keys[did])
        assert repo.rev == fetched.rev
        records = {record.path: record.value for record in repo.records()}
        assert {operation.path: operation.record for operation in fetched.ops} == records
    finally:
        network.end()


def test_events_can_be_pickled_and_only_the_original_is_acknowledged(sent: list[wireproof.Event]) -> None:
    copy = pickle.loads(pickle.dumps(sent[0]))
    assert copy == sent[0] and repr(copy) == repr(sent[0])
    assert (copy.frame, copy.host, copy.received) == (sent[0].frame, sent[0].host, sent[0].received)
    assert [operation.record for operation in copy.ops] == [operation.record for operation in sent[0].ops]
    with pytest.raises(RuntimeError, match="pickled"):
        copy.ack()
    with pytest.raises(AttributeError):
        copy.host = "other"


def test_a_host_that_may_not_be_connected_to_is_an_error(network: Network) -> None:
    before = threads()
    events = wireproof.follow(network.relay)
    with pytest.raises(wireproof.NetworkError) as failed:
        next(events)
    assert failed.value.code == "network/stream"
    with pytest.raises(StopIteration):
        next(events)
    events.close()

    async def in_asyncio() -> None:
        async with wireproof.follow(network.relay) as events:
            await anext(events)

    with pytest.raises(wireproof.NetworkError):
        asyncio.run(in_asyncio())
    assert_no_thread_is_left(before)


def test_attempts_to_connect_are_logged(network: Network, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "wireproof")

    async def attempts() -> None:
        async with wireproof.follow(network.hosts["plc"], **network.options) as events:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(anext(events), 1.0)

    asyncio.run(attempts())
    assert "status 404" in caplog.text and "retrying" in caplog.text


def test_an_unknown_account_is_an_error(network: Network) -> None:
    with pytest.raises(wireproof.IdentityError), follow(network, dids=["nobody.test"]) as events:
        next(events)


def test_a_state_that_is_no_state_file_is_an_error(network: Network, tmp_path: Path) -> None:
    state = tmp_path / "state.sqlite"
    state.write_bytes(b"not a state file, but long enough to be read as one " * 40)
    with pytest.raises(OSError, match="state.sqlite"):
        next(follow(network, state=state))


def test_a_stream_without_events_is_closed_at_once(network: Network) -> None:
    before = threads()
    with wireproof.follow(network.relay, **network.options):
        time.sleep(0.2)
        started = time.monotonic()
    assert time.monotonic() - started < 2
    assert_no_thread_is_left(before)


@pytest.mark.parametrize(
    ("arguments", "error", "name"),
    [
        ({"hosts": 7}, TypeError, "hosts"),
        ({"hosts": b"bsky.network"}, TypeError, "hosts"),
        ({"hosts": ["bsky.network", 7]}, TypeError, "hosts"),
        ({"hosts": []}, ValueError, "hosts"),
        ({"hosts": "http://"}, ValueError, "hosts"),
        ({"state": 7}, TypeError, "state"),
        ({"collections": 7}, TypeError, "collections"),
        ({"collections": ["post"]}, ValueError, "collections"),
        ({"dids": 7}, TypeError, "dids"),
        ({"dids": ["not a name"]}, ValueError, "dids"),
        ({"cursor": 1.5}, TypeError, "cursor"),
        ({"cursor": "yesterday"}, ValueError, "cursor"),
        ({"cursor": -1}, ValueError, "cursor"),
        ({"plc": 7}, TypeError, "plc"),
        ({"plc": "not a URL"}, ValueError, "plc"),
        ({"development": "yes"}, TypeError, "development"),
        ({"development_port": "80"}, TypeError, "development_port"),
        ({"queue": "7"}, TypeError, "queue"),
        ({"queue": 0}, ValueError, "queue"),
        ({"in_flight": 0}, ValueError, "in_flight"),
        ({"workers": True}, TypeError, "workers"),
        ({"resync": 1}, TypeError, "resync"),
        ({"auto_ack": 1}, TypeError, "auto_ack"),
        ({"stop_seconds": "7"}, TypeError, "stop_seconds"),
        ({"stop_seconds": 0}, ValueError, "stop_seconds"),
        ({"max_ops": "7"}, TypeError, "max_ops"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict, error: type[Exception], name: str) -> None:
    with pytest.raises(error, match=f"^argument '{name}': "):
        wireproof.follow(**({"hosts": "bsky.network"} | arguments))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_cannot_use_the_run_and_can_start_its_own(network: Network, tmp_path: Path) -> None:
    with follow(network, state=tmp_path / "parent.sqlite") as events:
        [first, *_] = take(events, 10)
        child = os.fork()
        if child == 0:
            os._exit(in_child(network, events, first, tmp_path / "child.sqlite"))
        assert os.waitpid(child, 0)[1] == 0
        # The run of the parent goes on.
        assert len(take(events, COMMITS - 10)) == COMMITS - 10 and first.ack()


def in_child(network: Network, events: wireproof.Follow, event: wireproof.Event, state: Path) -> int:
    refused = 0
    for use in (lambda: next(events), event.ack):
        try:
            use()
        except RuntimeError as error:
            refused += "forked" in str(error)
    events.close()
    with follow(network, state=state) as own:
        is_whole = len({event.seq for event in take(own, COMMITS)}) == COMMITS
    return 0 if refused == 2 and is_whole else 1
