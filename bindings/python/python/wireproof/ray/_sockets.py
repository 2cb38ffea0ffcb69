"""On which addresses processes of this machine listen, as Linux states it."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import struct
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Place:
    """A port on which a process listens."""

    process: str
    address: str
    port: int


def address_of(interface: str) -> str:
    """The IPv4 address of an interface of this machine, which is named or is the address itself."""
    with contextlib.suppress(ValueError):
        return str(ipaddress.IPv4Address(interface))
    import fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("256s", interface.encode()[:15])
        answer = fcntl.ioctl(any_socket.fileno(), SIOCGIFADDR, request)
    return socket.inet_ntoa(answer[20:24])


def descendants(pid: int, also: set[int] | frozenset[int] = frozenset()) -> set[int]:
    """A process, those that it has started, and those of `also` that still run."""
    parents = _parents()
    found = {pid} | {other for other in also if other in parents}
    while True:
        more = {child for child, parent in parents.items() if parent in found} - found
        if not more:
            return found
        found |= more


def listening(pids: set[int]) -> list[Place]:
    """The ports of TCP on which processes listen."""
    names = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            name = Path(f"/proc/{pid}/comm").read_text().strip()
            for number in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    names[os.readlink(f"/proc/{pid}/fd/{number}")] = name
    places = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:] if os.path.exists(table) else []:
            fields = line.split()
            process = names.get(f"socket:[{fields[9]}]")
            if process is not None and fields[3] == LISTEN:
                address, port = fields[1].split(":")
                places.append(Place(process, _address(address), int(port, 16)))
    return places


def _parents() -> dict[int, int]:
    """The parent of each process."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                # The name of the program is in parentheses and can have any characters.
                fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
                parents[int(name)] = int(fields[1])
    return parents


def _address(text: str) -> str:
    """The address of a table of the kernel: words of 32 bits in the order of this machine."""
    words = [struct.pack("=I", int(text[start : start + 8], 16)) for start in range(0, len(text), 8)]
    address = ipaddress.ip_address(b"".join(words))
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)


#: The state of a socket that listens.
LISTEN = "0A"

#: The request for the address of an interface.
SIOCGIFADDR = 0x8915
