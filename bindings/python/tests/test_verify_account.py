"""Accounts are proved end to end: handle, DID, document, repository."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from network import Network, assert_no_thread_is_left, start, threads
from test_resolve import SilentServer, closed_port

import wireproof


def start_one(command: str, *arguments: str) -> Network:
    """A network with one server of accounts."""
    return start(command, "--accounts", "3", "--prepared", "0", "--rate", "none", "--pds", "1", *arguments)


@pytest.fixture(scope="module")
def network(command: str) -> Iterator[Network]:
    network = start_one(command)
    yield network
    network.end()


@pytest.fixture
def faulty(command: str) -> Iterator[Any]:
    """Networks with a fault."""
    started: list[Network] = []

    def start_with(fault: str) -> Network:
        started.append(start_one(command, "--fault", fault))
        return started[-1]

    yield start_with
    for network in started:
        network.end()


def verify(network: Network, account: str, **options: Any) -> wireproof.Repo:
    return wireproof.verify_account(account, **(network.options | options))


def test_a_handle_a_did_and_a_uri_lead_to_the_same_proof(command: str, network: Network) -> None:
    before = threads()
    for account in network.accounts:
        by_handle = verify(network, account["handle"])
        assert (by_handle.did, by_handle.key) == (account["did"], account["signing_key"])
        assert by_handle.identity == wireproof.resolve(account["handle"], **network.options)
        assert by_handle.identity is by_handle.identity
        assert len(list(by_handle)) == len(by_handle) == 5
        for name in (account["did"], f"at://{account['did']}", f"at://{account['handle']}"):
            assert (verify(network, name).root, verify(network, name).identity) == (by_handle.root, by_handle.identity)
    assert_no_thread_is_left(before)


def test_the_command_says_the_same(command: str, network: Network) -> None:
    account = network.accounts[0]
    options = ["--plc", network.options["plc"], "--development-port", str(network.options["development_port"])]
    arguments = [command, "verify", account["handle"], "--json", *options]
    said = json.loads(subprocess.run(arguments, capture_output=True, check=True).stdout)
    repo = verify(network, account["handle"])
    assert said["verified"] is True
    assert (said["account"]["did"], said["account"]["handle"]) == (repo.did, repo.identity.handle)
    assert (said["repository"]["rev"], said["repository"]["records"]) == (repo.rev, len(repo))


def test_a_mirror_gives_the_same_proof(network: Network) -> None:
    account = network.accounts[0]
    repo = verify(network, account["did"], host=network.hosts["pds0"], threads=2, strict_records=True)
    assert repo.root == verify(network, account["did"]).root


def test_a_repository_of_an_account_is_pickled_with_its_identity_and_proved_again(network: Network) -> None:
    repo = verify(network, network.accounts[0]["handle"])
    again = pickle.loads(pickle.dumps(repo))
    assert (again.root, again.identity, list(again)) == (repo.root, repo.identity, list(repo))


def test_a_repository_of_a_file_has_no_identity(exported) -> None:
    assert wireproof.verify_repo(exported.car, exported.key).identity is None


def test_another_key_in_the_document_is_a_rejection(faulty) -> None:
    network = faulty("plc:wrong-key:always")
    with pytest.raises(wireproof.Rejection) as refused:
        verify(network, network.accounts[0]["did"])
    assert refused.value.code == "signature/wrong"


def test_a_handle_that_its_account_does_not_claim_is_refused(faulty) -> None:
    network = faulty("plc:no-handle:always")
    account = network.accounts[0]
    with pytest.raises(wireproof.IdentityError) as refused:
        verify(network, account["handle"])
    assert refused.value.code == "identity/handle"
    by_did = verify(network, account["did"])
    assert by_did.identity.handle is None and len(by_did) == 5


@pytest.mark.parametrize(
    ("fault", "options", "message"),
    [
        ("pds0:cut-repo:always", {}, "getRepo"),
        ("pds0:503:always", {}, "status 503"),
        ("pds0:endless-repo:always", {"max_bytes": 100_000}, r"\(the limit of max_bytes\)$"),
        ("pds0:stalled-repo:always", {"max_silent_seconds": 0.2}, r"\(the limit of max_silent_seconds\)$"),
        ("pds0:stalled-repo:always", {"max_seconds": 0.2}, r"\(the limit of max_seconds\)$"),
    ],
)
def test_a_host_that_does_not_send_the_repository_is_a_network_error(
    faulty, fault: str, options: dict[str, Any], message: str
) -> None:
    network = faulty(fault)
    started = time.monotonic()
    with pytest.raises(wireproof.NetworkError, match=message) as failed:
        verify(network, network.accounts[0]["did"], **options)
    assert failed.value.code == "network/repository"
    assert time.monotonic() - started < 10


def test_a_host_that_never_answers_and_one_that_is_away_are_given_up(network: Network) -> None:
    did = network.accounts[0]["did"]
    with SilentServer() as silent:
        started = time.monotonic()
        with pytest.raises(wireproof.NetworkError, match="max_silent_seconds"):
            verify(network, did, host=silent, max_silent_seconds=0.1)
        assert time.monotonic() - started < 8, "5 seconds to connect, and the silence"
    with pytest.raises(wireproof.NetworkError, match="cannot connect"):
        verify(network, did, host=f"http://localhost:{closed_port()}")


def test_unknown_accounts_and_directories_that_are_away_are_errors_as_of_resolve(network: Network) -> None:
    for name in ("did:plc:aaaaaaaaaaaaaaaaaaaaaaaa", "nobody.test"):
        with pytest.raises(wireproof.IdentityError) as refused:
            verify(network, name)
        assert refused.value.code == "identity/not-found"
    with pytest.raises(wireproof.NetworkError) as failed:
        verify(network, network.accounts[0]["did"], plc=f"http://localhost:{closed_port()}")
    assert failed.value.code == "identity/unavailable"


@pytest.mark.parametrize(
    ("arguments", "error", "name"),
    [
        ({"account": 7}, TypeError, "account"),
        ({"account": "not a name"}, ValueError, "account"),
        ({"account": "at://"}, ValueError, "account"),
        ({"account": "at://ada.test/app.bsky.feed.post/self"}, ValueError, "account"),
        ({"host": 7}, TypeError, "host"),
        ({"host": "http://"}, ValueError, "host"),
        ({"strict_records": 1}, TypeError, "strict_records"),
        ({"threads": "7"}, TypeError, "threads"),
        ({"threads": 0}, ValueError, "threads"),
        ({"max_bytes": 0}, ValueError, "max_bytes"),
        ({"max_seconds": 0}, ValueError, "max_seconds"),
        ({"max_seconds": 86_401}, ValueError, "max_seconds"),
        ({"max_silent_seconds": "7"}, TypeError, "max_silent_seconds"),
        ({"max_silent_seconds": float("nan")}, ValueError, "max_silent_seconds"),
        ({"min_rate": -1}, ValueError, "min_rate"),
        ({"plc": 7}, TypeError, "plc"),
        ({"development": "yes"}, TypeError, "development"),
        ({"development_port": 0}, ValueError, "development_port"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, Any], error: type[Exception], name: str) -> None:
    with pytest.raises(error, match=f"^argument '{name}': "):
        wireproof.verify_account(**({"account": "ada.test"} | arguments))


def test_a_uri_of_a_record_is_refused_with_what_to_do() -> None:
    with pytest.raises(ValueError, match="verify 'ada.test', then ask the result for 'app.bsky.feed.post/self'"):
        wireproof.verify_account("at://ada.test/app.bsky.feed.post/self")


def test_other_threads_run_meanwhile(network: Network) -> None:
    turns, ended = [0], threading.Event()

    def count() -> None:
        while not ended.is_set():
            turns[0] += 1
            time.sleep(0.005)

    counter = threading.Thread(target=count)
    counter.start()
    try:
        with SilentServer() as silent, pytest.raises(wireproof.NetworkError):
            verify(network, network.accounts[0]["did"], host=silent, max_seconds=0.3)
    finally:
        ended.set()
        counter.join()
    assert turns[0] >= 20


def test_ctrl_c_ends_the_download(network: Network) -> None:
    program = """
import json, signal, sys, wireproof
signal.signal(signal.SIGINT, signal.default_int_handler)
account, options = sys.argv[1], json.loads(sys.argv[2])
print("ready", flush=True)
try:
    wireproof.verify_account(account, **options)
except KeyboardInterrupt:
    print("interrupted")
"""
    with SilentServer() as silent:
        options = json.dumps(network.options | {"host": silent})
        arguments = [sys.executable, "-c", program, network.accounts[0]["did"], options]
        process = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
        assert process.stdout and process.stdout.readline() == "ready\n"
        time.sleep(0.5)
        os.kill(process.pid, signal.SIGINT)
        started = time.monotonic()
        printed, _ = process.communicate(timeout=10)
        assert printed == "interrupted\n" and time.monotonic() - started < 4


def test_the_collections_of_an_account_are_proved_complete_and_again_offline(network: Network) -> None:
    account = network.accounts[0]
    repo = verify(network, account["did"])
    for collections in ({record.collection for record in repo}, ["app.bsky.*"], ["com.example.none"]):
        proof = wireproof.verify_account_collections(account["handle"], collections, **network.options)
        expected = [record for record in repo if not any("none" in name for name in collections)]
        assert list(proof) == expected and len(proof) == len(expected)
        assert (proof.did, proof.rev, proof.root) == (repo.did, repo.rev, repo.root)
        assert proof.identity == repo.identity and proof.received_bytes > 0 and proof.invalid == {}
        again = wireproof.verify_collections(proof.slice, collections, account["signing_key"])
        assert list(again) == expected and again.slice is None and again.collections == tuple(collections)


def test_a_server_that_withholds_a_part_of_a_proof_is_refused_and_one_without_blocks_is_not(faulty: Any) -> None:
    for fault, code in (("withheld-block", "tree/missing-node"), ("extra-block", "car/extra")):
        network = faulty(f"pds0:{fault}:always")
        with pytest.raises(wireproof.Rejection) as raised:
            wireproof.verify_account_collections(network.accounts[0]["did"], ["app.bsky.*"], **network.options)
        assert raised.value.code in (code, "record/missing")
    network = faulty("pds0:no-blocks:always")
    proof = wireproof.verify_account_collections(network.accounts[0]["did"], ["app.bsky.*"], **network.options)
    assert len(proof) == 5 and "getBlocks" in proof.whole_repository
    with pytest.raises(wireproof.NetworkError, match="the limit of max_bytes"):
        options = network.options | {"max_bytes": 100}
        wireproof.verify_account_collections(network.accounts[0]["did"], ["app.bsky.*"], **options)


@pytest.mark.parametrize("collections", ["app.bsky.feed.post", [], ["post"], [7], 7])
def test_collections_are_a_list_of_names(network: Network, collections: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        wireproof.verify_account_collections(network.accounts[0]["did"], collections, **network.options)
    with pytest.raises((TypeError, ValueError)):
        wireproof.verify_collections(b"", collections, network.accounts[0]["signing_key"])
