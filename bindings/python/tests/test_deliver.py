"""Streams are delivered into destinations: old records and new, resumed by the next call, ended in order."""

from __future__ import annotations

import json
import logging
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from network import Network, assert_no_thread_is_left, start, threads
from test_resolve import closed_port

import wireproof

COMMITS = 200


@pytest.fixture(scope="module")
def network(command: str) -> Iterator[Network]:
    """A relay with a number of events, to which none is added."""
    network = start(command, "--accounts", "4", "--prepared", str(COMMITS), "--rate", "none")
    yield network
    network.end()


def deliver(network: Network, folder: Path, **options: Any) -> dict[str, int]:
    options = {"cursor": "oldest", "to": f"sqlite:{folder / 'records.db'}", "state": folder / "state"} | options
    return wireproof.deliver(network.relay, **(network.options | options))


def records(folder: Path) -> dict[str, int]:
    """The number of records of the accounts in the database."""
    with sqlite3.connect(folder / "records.db") as database:
        return dict(database.execute("SELECT did, count(*) FROM record GROUP BY did"))


def test_all_records_of_an_account_are_delivered_and_the_next_call_continues(network: Network, tmp_path: Path) -> None:
    before = threads()
    account = network.accounts[0]
    proved = wireproof.verify_account(account["did"], **network.options)
    counts = deliver(network, tmp_path, dids=[f"@{account['handle']}"], backfill=True, events=3)
    # The events before the history are older than it.
    assert counts["verified"] >= 3
    counts = deliver(network, tmp_path, dids=[account["did"]], backfill=True, events=5)
    assert counts["verified"] >= 5
    assert records(tmp_path) == {account["did"]: len(proved)}
    assert_no_thread_is_left(before)


def test_events_are_counted_by_their_code(network: Network, tmp_path: Path) -> None:
    counts = deliver(network, tmp_path, events=COMMITS, workers=2, ops=True, to=f"file://{tmp_path / 'lines'}")
    assert sum(counts.values()) == COMMITS
    assert counts["verified"] > 0
    lines = [json.loads(line) for file in (tmp_path / "lines").rglob("*.ndjson*") for line in file.read_text().splitlines()]
    assert {line["did"] for line in lines} >= {account["did"] for account in network.accounts}


def test_an_event_ends_the_call_from_another_thread(network: Network, tmp_path: Path) -> None:
    before, stop = threads(), threading.Event()
    timer = threading.Timer(1, stop.set)
    timer.start()
    deliver(network, tmp_path, stop=stop)
    timer.join()
    assert set(records(tmp_path)) == {account["did"] for account in network.accounts}
    assert_no_thread_is_left(before)


# SIGINT is set to its default, as a shell starts programs in the background with SIGINT ignored.
PROGRAM = """
import signal, sys, wireproof
signal.signal(signal.SIGINT, signal.default_int_handler)
relay, plc, port, folder = sys.argv[1:]
print("begins", flush=True)
try:
    wireproof.deliver(relay, to=f"sqlite:{folder}/records.db", state=f"{folder}/state", cursor="oldest", plc=plc,
                      development_port=int(port))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_ctrl_c_ends_the_call_in_order(network: Network, tmp_path: Path) -> None:
    arguments = [network.relay, network.options["plc"], str(network.options["development_port"]), str(tmp_path)]
    child = subprocess.Popen([sys.executable, "-c", PROGRAM, *arguments], stdout=subprocess.PIPE, text=True)
    assert child.stdout and child.stdout.readline() == "begins\n"
    deadline = time.monotonic() + 60
    while not (tmp_path / "records.db").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(child.pid, signal.SIGINT)
    assert child.communicate(timeout=60)[0] == "interrupted\n"
    assert child.returncode == 0
    deliver(network, tmp_path, stop=_set(), dids=None)


def _set() -> threading.Event:
    event = threading.Event()
    event.set()
    return event


def test_messages_go_to_the_logger(network: Network, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "wireproof"):
        deliver(network, tmp_path, events=10, verify="signature")
    texts = [record.getMessage() for record in caplog.records if record.name == "wireproof"]
    assert any("operations are not verified" in text for text in texts), texts


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"to": "carrier-pigeon://loft"}, ValueError),
        ({"to": []}, ValueError),
        ({"backfill": True, "verify": "none", "dids": ["nobody"]}, ValueError),
        ({"backfill": 1}, TypeError),
        ({"cursor": "newest"}, ValueError),
        ({"verify": "most"}, ValueError),
        ({"metrics": "everywhere"}, ValueError),
        ({"workers": 0}, ValueError),
        ({"workers": 100_000}, ValueError),
        ({"stop": "now"}, TypeError),
        ({"dids": b"did:web:example.com"}, TypeError),
    ],
)
def test_arguments_that_make_no_sense_are_refused(
    network: Network, tmp_path: Path, options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        deliver(network, tmp_path, **options)
    assert not (tmp_path / "records.db").exists()


def test_a_host_that_does_not_answer_is_a_network_error(tmp_path: Path) -> None:
    with pytest.raises(wireproof.NetworkError):
        wireproof.deliver(
            f"http://127.0.0.1:{closed_port()}",
            to=f"sqlite:{tmp_path / 'records.db'}",
            state=tmp_path / "state",
            development=True,
        )


def test_a_folder_that_cannot_be_written_is_an_os_error(network: Network, tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    with pytest.raises(OSError):
        deliver(network, tmp_path)
