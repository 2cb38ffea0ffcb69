"""Accounts are resolved, with their handles checked both ways."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from network import Network, assert_no_thread_is_left, start, threads

import wireproof


@pytest.fixture(scope="module")
def network(command: str) -> Iterator[Network]:
    network = start(command, "--accounts", "3", "--prepared", "0", "--rate", "none", "--pds", "1")
    yield network
    network.end()


def resolvers(network: Network):
    """Both functions, with the same arguments."""
    yield lambda name: wireproof.resolve(name, **network.options)
    yield lambda name: asyncio.run(wireproof.resolve_async(name, **network.options))


def test_a_handle_and_its_did_lead_to_the_same_account(network: Network) -> None:
    before = threads()
    for account in network.accounts:
        for resolve in resolvers(network):
            by_handle, by_did = resolve(account["handle"]), resolve(account["did"])
            assert by_handle == by_did and hash(by_handle) == hash(by_did)
            assert (by_did.did, by_did.handle) == (account["did"], account["handle"])
            assert by_did.signing_key == account["signing_key"]
            assert by_did.pds == network.hosts["pds0"] and by_did.handle_error is None
    assert_no_thread_is_left(before)


def test_the_document_has_the_form_of_a_did_document(network: Network) -> None:
    account = network.accounts[0]
    document = wireproof.resolve(account["did"], **network.options).document
    assert document["id"] == account["did"]
    assert document["alsoKnownAs"] == [f"at://{account['handle']}"]
    [method], [service] = document["verificationMethod"], document["service"]
    assert f"did:key:{method['publicKeyMultibase']}" == account["signing_key"]
    assert service["serviceEndpoint"] == network.hosts["pds0"]


def test_an_identity_can_be_pickled_and_not_changed(network: Network) -> None:
    identity = wireproof.resolve(network.accounts[0]["did"], **network.options)
    copy = pickle.loads(pickle.dumps(identity))
    assert copy == identity and copy.document == identity.document and repr(copy) == repr(identity)
    with pytest.raises(AttributeError):
        identity.did = "did:web:example.com"


def test_unknown_accounts_are_refused_with_a_code(network: Network) -> None:
    for resolve in resolvers(network):
        with pytest.raises(wireproof.IdentityError) as refused:
            resolve("did:plc:aaaaaaaaaaaaaaaaaaaaaaaa")
        assert refused.value.code == "identity/not-found"
        with pytest.raises(wireproof.IdentityError) as refused:
            resolve("nobody.test")
        assert refused.value.code == "identity/not-found"


def test_a_handle_that_its_account_does_not_claim_is_refused(command: str) -> None:
    network = start(
        command, "--accounts", "3", "--prepared", "0", "--rate", "none", "--pds", "1", "--fault", "plc:no-handle:always"
    )
    try:
        account = network.accounts[0]
        for resolve in resolvers(network):
            with pytest.raises(wireproof.IdentityError) as refused:
                resolve(account["handle"])
            assert refused.value.code == "identity/handle"
            by_did = resolve(account["did"])
            assert by_did.handle is None and account["did"] in by_did.handle_error
    finally:
        network.end()


def closed_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def test_a_directory_that_is_away_is_a_network_error() -> None:
    did = "did:plc:aaaaaaaaaaaaaaaaaaaaaaaa"
    away = Network(None, {}, [], {"plc": f"http://localhost:{closed_port()}", "development": True})
    for resolve in resolvers(away):
        with pytest.raises(wireproof.NetworkError) as refused:
            resolve(did)
        assert refused.value.code == "identity/unavailable"
        assert isinstance(refused.value, ConnectionError)


def test_without_development_no_connection_is_made_to_this_machine(network: Network) -> None:
    with pytest.raises(wireproof.NetworkError):
        wireproof.resolve(network.accounts[0]["did"], plc=network.options["plc"])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"name": 7}, TypeError, "name"),
        ({"name": "ada.test", "plc": 7}, TypeError, "plc"),
        ({"name": "ada.test", "development": "yes"}, TypeError, "development"),
        ({"name": "ada.test", "development_port": "80"}, TypeError, "development_port"),
        ({"name": "ada.test", "development_port": 65536}, ValueError, "development_port"),
        ({"name": "not a name"}, ValueError, "name"),
        ({"name": "ada.test", "plc": "not a URL"}, ValueError, "plc"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^argument '{message}': "):
        wireproof.resolve(**arguments)
    with pytest.raises(error, match=f"^argument '{message}': "):
        asyncio.run(wireproof.resolve_async(**arguments))


class SilentServer:
    """A server that accepts connections and says nothing."""

    def __enter__(self) -> str:
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen()
        return f"http://localhost:{self.listener.getsockname()[1]}"

    def __exit__(self, *_) -> None:
        self.listener.close()


def test_the_loop_runs_on_during_a_lookup_and_cancelling_ends_it() -> None:
    async def cancelled(plc: str) -> int:
        lookup = asyncio.create_task(
            wireproof.resolve_async("did:plc:aaaaaaaaaaaaaaaaaaaaaaaa", plc=plc, development=True)
        )
        turns = 0
        while turns < 20:
            await asyncio.sleep(0.01)
            turns += 1
        assert not lookup.done()
        lookup.cancel()
        with pytest.raises(asyncio.CancelledError):
            await lookup
        return turns

    before, python = threads(), threading.active_count()
    with SilentServer() as plc:
        started = time.monotonic()
        assert asyncio.run(cancelled(plc)) == 20
        assert time.monotonic() - started < 5
    assert_no_thread_is_left(before)
    assert threading.active_count() == python


def test_ctrl_c_ends_a_lookup() -> None:
    program = """
import signal, sys, wireproof
signal.signal(signal.SIGINT, signal.default_int_handler)
print("ready", flush=True)
try:
    wireproof.resolve("did:plc:aaaaaaaaaaaaaaaaaaaaaaaa", plc=sys.argv[1], development=True)
except KeyboardInterrupt:
    print("interrupted")
"""
    with SilentServer() as plc:
        process = subprocess.Popen([sys.executable, "-c", program, plc], stdout=subprocess.PIPE, text=True)
        assert process.stdout and process.stdout.readline() == "ready\n"
        time.sleep(0.3)
        os.kill(process.pid, signal.SIGINT)
        started = time.monotonic()
        printed, _ = process.communicate(timeout=10)
        assert printed == "interrupted\n" and time.monotonic() - started < 5
