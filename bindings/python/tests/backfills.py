"""Backfills of simulated hosts, by one process and on a cluster."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from network import Network


@dataclass(frozen=True)
class Hosts:
    """The hosts of a simulated network."""

    command: str
    network: Network
    #: Maximum number of requests a second to a host.
    max_rate: int = 20

    @property
    def urls(self) -> list[str]:
        return self.network.pds

    @property
    def arguments(self) -> list[str]:
        plc = self.network.options["plc"]
        return ["--development", "--plc", plc, "--max-rate", str(self.max_rate), "--retry-seconds", "0"]

    def begin(self, archive: Path, *arguments: str) -> subprocess.Popen[str]:
        """Begins one process without a cluster."""
        listed = archive.parent / "hosts"
        listed.write_text("\n".join(self.urls))
        command = [self.command, "backfill", "--to", str(archive), "--hosts", str(listed)]
        command += [*self.arguments, *arguments]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def fetch(self, archive: Path) -> None:
        """Runs one process to its end."""
        process = self.begin(archive)
        said = process.communicate(timeout=300)[1]
        assert process.returncode == 0, said

    def call(self, archive: Path, *, urls: list[str] | None = None, relay: str | None = None, **options: Any) -> str:
        """The call for a cluster."""
        source = {"relay": relay} if relay else {"hosts": urls or self.urls}
        options = source | {"arguments": self.arguments} | options
        return f"wireproof.ray.backfill({str(archive)!r}, **{options!r})"

    def status(self, archive: Path) -> dict[str, Any]:
        """What the ledger says."""
        command = [self.command, "backfill", "status", str(archive), "--json"]
        return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
