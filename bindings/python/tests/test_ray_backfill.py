"""`wireproof.ray.backfill` of simulated hosts, on real processes of Ray."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import wireproof
from archives import digest, repeat_rows
from backfills import Hosts
from network import start

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")
pytest.importorskip("ray")

import wireproof.ray  # noqa: E402
from clusters import Cluster, begin, importing, printed, processes, wait_until  # noqa: E402

ACCOUNTS, HOSTS = 200, 10


@pytest.fixture(scope="module")
def hosts(command: str) -> Iterator[Hosts]:
    network = start(command, "--accounts", str(ACCOUNTS), "--pds", str(HOSTS), "--prepared", "0", "--rate", "none")
    yield Hosts(command, network)
    network.end()


@pytest.fixture(scope="module")
def single(hosts: Hosts, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of one process that nothing disturbed."""
    archive = tmp_path_factory.mktemp("single") / "archive"
    hosts.fetch(archive)
    return archive


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = begin(tmp_path_factory.mktemp("cluster"), importing())
    yield cluster
    cluster.end()


def test_the_archive_is_that_of_one_process(cluster: Cluster, hosts: Hosts, single: Path, tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    run = cluster.run(hosts.call(archive))
    status = run.pop("status")
    assert run == {"tasks": 2, "attempts": 2, "lost": 0, "duplicates": 0, "messages": []}
    assert (status["stored_count"], status["done_list_count"]) == (ACCOUNTS, HOSTS)
    assert status == hosts.status(archive)
    assert digest(archive) == digest(single)
    again = cluster.run(hosts.call(archive, tasks=1))
    assert again == run | {"tasks": 1, "attempts": 1, "status": status}


@pytest.mark.parametrize("victim", ["ray::do", "--to "])
def test_a_worker_or_its_process_that_is_killed_is_replaced(
    victim: str, cluster: Cluster, hosts: Hosts, single: Path, tmp_path: Path
) -> None:
    archive = tmp_path / "archive"

    def running(part: str) -> list[int]:
        return processes(cluster.process.pid, lambda line: part in line and (part == "ray::do" or str(archive) in line))

    program = cluster.submit(hosts.call(archive))
    wait_until(lambda: len(running("--to ")) == 2)
    before = running("--to ")
    os.kill(running(victim)[0], signal.SIGKILL)
    wait_until(lambda: len(set(before) & set(running("--to "))) == 1 or program.poll() is not None)
    run = printed(program)
    assert (run["tasks"], run["attempts"], run["lost"], run["duplicates"]) == (2, 3, 1, 0)
    assert running("--to ") == []
    assert digest(archive) == digest(single)


def test_a_host_that_is_away_is_named_and_the_others_are_read(cluster: Cluster, hosts: Hosts, tmp_path: Path) -> None:
    away = "http://localhost:1"
    run = cluster.run(hosts.call(tmp_path / "archive", urls=[away, *hosts.urls[:2]]))
    assert run["status"]["done_list_count"] == 2 and run["lost"] == 0
    [stopped] = [of["stopped"] for of in run["status"]["lists"] if of["list"] == away]
    assert "cannot connect" in stopped
    assert ["1 lists were not read to their end" in message for message in run["messages"]] == [True]


def test_accounts_are_selected_and_excluded(cluster: Cluster, hosts: Hosts, single: Path, tmp_path: Path) -> None:
    import pyarrow

    stored = pyarrow.table(wireproof.Archive(single).scan("snapshots", ["did", "host"])).to_pylist()
    accounts = [row["did"] for row in stored if row["host"] == hosts.urls[0]][:3]
    archive = tmp_path / "archive"
    cluster.run(hosts.call(archive, urls=hosts.urls[:1], dids=accounts, exclude=accounts[:1]))
    assert pyarrow.table(wireproof.Archive(archive).scan("snapshots", ["did"]))["did"].to_pylist() == sorted(accounts[1:])


def test_a_relay_names_the_hosts(cluster: Cluster, hosts: Hosts, single: Path, tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    run = cluster.run(hosts.call(archive, relay=hosts.network.relay))
    assert run["status"]["list_count"] == HOSTS and run["status"]["lists"][0]["stated_accounts"] == ACCOUNTS // HOSTS
    assert digest(archive) == digest(single)


def test_a_repository_that_is_stored_twice_is_counted(cluster: Cluster, hosts: Hosts, single: Path, tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    call = hosts.call(archive, urls=hosts.urls[:2])
    assert cluster.run(call)["duplicates"] == 0
    [first, *_] = wireproof.Archive(archive).files("snapshots")
    repeat_rows(archive, first["path"])
    assert cluster.run(call)["duplicates"] == first["rows"] > 0


REFUSED = [
    ({"name": "../x"}, "ValueError: .*wireproof: ../x: a name has 1 to 64 letters"),
    ({"arguments": ["--no-such"]}, "ValueError: error: unexpected argument '--no-such'"),
    ({"urls": ["a b"]}, "ValueError: .*wireproof: /dev/fd/[0-9]+: `a b` is neither a host nor its URL"),
    ({"tasks": 0}, "ValueError: argument 'tasks': expected at least 1"),
    ({"attempts": 0}, "ValueError: argument 'attempts': expected at least 1"),
    ({"timeout_seconds": 0}, "ValueError: argument 'timeout_seconds': expected more than 0"),
    ({"timeout_seconds": 0.01}, "ClusterError: not done after 0.01 s: the same call goes on"),
]


def test_what_cannot_be_done_is_said(cluster: Cluster, hosts: Hosts, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    refused = [*REFUSED, ({"attempts": 2}, "ClusterError: process [01]: 2 of 2 attempts failed: exit code 4: ")]
    archives = [tmp_path / "archive"] * len(REFUSED) + [tmp_path / "file/archive"]
    calls = [hosts.call(archive, **options) for archive, (options, _) in zip(archives, refused, strict=True)]
    said = cluster.run(f"cluster_work.raised({', '.join(f'lambda: {call}' for call in calls)})")["messages"]
    for message, (_, expected) in zip(said, refused, strict=True):
        assert re.match(expected, message, re.DOTALL), message


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({}, ValueError),
        ({"hosts": ["pds.example.com"], "relay": "https://relay.example.com"}, ValueError),
        ({"hosts": "pds.example.com"}, TypeError),
        ({"hosts": ["pds.example.com"], "dids": "did:web:example.com"}, TypeError),
        ({"relay": "https://relay.example.com", "collections": "app.bsky.feed.post"}, TypeError),
        ({"hosts": ["pds.example.com"], "arguments": "--max-rate 5"}, TypeError),
        ({"hosts": ["pds.example.com"]}, wireproof.ray.ClusterError),
    ],
)
def test_arguments_are_checked_before_the_cluster_is_asked(options: dict[str, Any], error: type, tmp_path: Path) -> None:
    with pytest.raises(error):
        wireproof.ray.backfill(tmp_path, **options)
