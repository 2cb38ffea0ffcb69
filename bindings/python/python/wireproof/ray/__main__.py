"""`python -m wireproof.ray up` begins a Ray cluster that demands a token, or joins one, and `submit` runs a program on one."""

from __future__ import annotations

import argparse
import contextlib
import ipaddress
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from ._sockets import address_of, descendants, listening


def main(arguments: list[str] | None = None) -> int:
    """Run the command, and return its exit code: 0 done, 2 usage, 3 the cluster; of `submit` that of the program."""
    options = _parser().parse_args(arguments)
    try:
        return options.run(options)
    except LauncherError as error:
        print(f"wireproof.ray: {error}", file=sys.stderr)
        return EXIT_CLUSTER


class LauncherError(Exception):
    """The cluster is not what it should be."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m wireproof.ray", description=__doc__)
    commands = parser.add_subparsers(required=True)
    up = commands.add_parser("up", help="begin a cluster on this machine, or join one, until it is terminated")
    up.add_argument("--join", metavar="HOST:PORT", help="join the cluster whose address `up` printed on another machine")
    up.add_argument("--interface", required=True, help="name or IPv4 address of the interface, such as lo or 10.0.0.5")
    up.add_argument("--any-interface", action="store_true", help="allow ports on all interfaces, behind a firewall")
    up.add_argument("--port", type=int, default=6379, help="port of the head; 0 takes a free one [default: 6379]")
    up.add_argument("--cpus", type=int, help="number of processors [default: all]")
    up.add_argument("--store-mib", type=int, default=256, help="shared memory for objects in MiB [default: 256]")
    up.add_argument("--temporary", type=Path, help="folder of logs and sockets [default: that of Ray]")
    up.add_argument("--wait", type=float, default=120, help="seconds until it must have begun [default: 120]")
    submit = commands.add_parser("submit", help="run a program of Python on a cluster")
    submit.add_argument("--address", required=True, help="HOST:PORT that `up` printed")
    submit.add_argument("--timeout", type=float, default=86_400, help="seconds that it may take [default: a day]")
    submit.add_argument("program", help="the program, which calls ray.init()")
    submit.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    for command, run in ((up, _up), (submit, _submit)):
        command.add_argument(
            "--token-file", type=Path, default=Path.home() / ".ray/auth_token", help="[default: ~/.ray/auth_token]"
        )
        command.set_defaults(run=run)
    return parser


def _up(options: argparse.Namespace) -> int:
    try:
        address = address_of(options.interface)
    except OSError as error:
        raise LauncherError(f"--interface {options.interface}: {error}") from error
    environment = _environment(_token_file(options.token_file, create=options.join is None), address)
    environment["RAY_raylet_start_wait_time_s"] = str(int(options.wait))
    start = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats"]
    start += [f"--node-ip-address={address}", f"--object-store-memory={options.store_mib << 20}"]
    if options.join is None:
        port = options.port or _free_port(address)
        head, awaited = f"{address}:{port}", {"raylet", HEAD}
        start += ["--head", f"--port={port}", "--include-dashboard=false"]
    else:
        if _is_loopback(address):
            raise LauncherError(f"--interface {options.interface}: machines join over an interface that they share")
        _connect("--join", options.join)
        head, awaited = options.join, {"raylet"}
        start += [f"--address={head}"]
    start += [] if options.cpus is None else [f"--num-cpus={options.cpus}"]
    start += [] if options.temporary is None else [f"--temp-dir={options.temporary.absolute()}"]
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop)
    process = subprocess.Popen(start, env=environment, stdout=subprocess.DEVNULL)
    try:
        _wait_for(process, awaited, options.wait)
        _check(process, address, options.any_interface)
        print(json.dumps({"address": head, "token_file": str(options.token_file)}), flush=True)
        while process.poll() is None:
            time.sleep(CHECK_SECONDS)
            _check(process, address, options.any_interface)
        raise LauncherError(f"Ray has ended with exit code {process.returncode}")
    except _Stopped:
        return 0
    finally:
        _end(process)


def _submit(options: argparse.Namespace) -> int:
    host = _connect("--address", options.address)
    environment = _environment(_token_file(options.token_file, create=False), host)
    environment["RAY_ADDRESS"] = options.address
    process = subprocess.Popen([sys.executable, options.program, *options.arguments], env=environment)
    try:
        return process.wait(options.timeout)
    except subprocess.TimeoutExpired as error:
        raise LauncherError(f"the program was ended after {options.timeout:g} s") from error
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _connect(option: str, address: str) -> str:
    """Checks that something listens at an address, and returns its host."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
    except (OSError, ValueError) as error:
        raise LauncherError(f"{option} {address}: {error}") from error
    return host


class _Stopped(BaseException):
    """The process was asked to end."""


def _stop(_number: int, _frame: object) -> None:
    raise _Stopped


def _environment(token_file: Path, address: str) -> dict[str, str]:
    """The environment of Ray's processes: it demands the token, and takes a loopback address as it is."""
    environment = {name: value for name, value in os.environ.items() if name != "RAY_AUTH_TOKEN"}
    environment |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token_file.absolute())}
    environment["RAY_USAGE_STATS_ENABLED"] = "0"
    if _is_loopback(address):
        # Otherwise Ray takes the address of another interface instead, and listens on all of them.
        environment["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    return environment


def _token_file(path: Path, create: bool) -> Path:
    """The file of the token, which no other user can read."""
    if create:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError), open(path, "x", opener=_private) as file:
            file.write(secrets.token_hex(32))
    try:
        found = path.stat()
    except OSError as error:
        raise LauncherError(f"--token-file {path}: {error.strerror}: `up` creates it, copy it to this machine") from error
    if found.st_mode & 0o077:
        raise LauncherError(f"--token-file {path}: other users can read it: chmod 600 {path}")
    if found.st_size < 32:
        raise LauncherError(f"--token-file {path}: the token has less than 32 bytes")
    return path


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _free_port(address: str) -> int:
    with socket.socket() as free:
        free.bind((address, 0))
        return free.getsockname()[1]


def _wait_for(process: subprocess.Popen[bytes], awaited: set[str], seconds: float) -> None:
    """Waits until each of these programs of Ray listens."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise LauncherError(f"Ray has not begun: exit code {process.returncode}")
        if awaited <= {place.process for place in listening(descendants(process.pid))}:
            return
        time.sleep(0.2)
    raise LauncherError(f"Ray has not begun within {seconds:g} s")


def _check(process: subprocess.Popen[bytes], address: str, is_any_allowed: bool) -> None:
    """Checks that the processes of the cluster listen on the interface and on loopback alone."""
    for place in listening(descendants(process.pid)):
        if place.address != address and not _is_loopback(place.address) and not is_any_allowed:
            raise LauncherError(
                f"{place.process} listens on {place.address}:{place.port}, not on {address} alone: Ray does so unless the interface "
                "is loopback; put a firewall before the machine, and pass --any-interface"
            )


def _is_loopback(address: str) -> bool:
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(address).is_loopback
    return address == "localhost"


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends Ray, and what is left of its processes after some time."""
    started = descendants(process.pid)
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(END_SECONDS)
    for pid in started & descendants(process.pid, also=started):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(END_SECONDS)


EXIT_CLUSTER = 3

#: The program of Ray that other machines connect to.
HEAD = "gcs_server"

#: Time between two checks of what was bound.
CHECK_SECONDS = 5

#: Time within which a head must accept a connection.
CONNECT_SECONDS = 10

#: Time within which the processes of Ray end by themselves.
END_SECONDS = 20

if __name__ == "__main__":
    sys.exit(main())
