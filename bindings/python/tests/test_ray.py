"""`wireproof.ray` on real processes of Ray, of which workers and programs are killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import wireproof
from archives import break_rules, findings, import_parts, replace_rows

pytest.importorskip("pyarrow")
pytest.importorskip("ray")

import wireproof.ray  # noqa: E402
from clusters import Cluster, begin, importing, launch  # noqa: E402
from wireproof.ray._sockets import descendants, listening  # noqa: E402

PARTS = 6


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return importing(WIREPROOF_TEST_MARKER=str(tmp_path_factory.mktemp("marker") / "killed"))


@pytest.fixture(scope="module")
def cluster(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = begin(tmp_path_factory.mktemp("cluster"), environment)
    yield cluster
    cluster.end()


@pytest.fixture(scope="module")
def archive(command: str, frames: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of several files, one of which has rows that break rules."""
    archive = import_parts(command, frames, tmp_path_factory.mktemp("archive"), PARTS)
    replace_rows(archive, wireproof.Archive(archive).files("events")[0]["path"], break_rules)
    return archive


@pytest.fixture(scope="module")
def undisturbed(cluster: Cluster, archive: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    to = tmp_path_factory.mktemp("undisturbed")
    return cluster.run(f"wireproof.ray.reverify({str(archive)!r}, {str(to)!r})")


def test_each_verdict_is_that_of_the_command(command: str, archive: Path, undisturbed: dict[str, Any]) -> None:
    said = findings(command, archive)
    expected = {f"refused {code}": count for code, count in said["refused"].items()}
    expected |= {f"unverified {code}": count for code, count in said["unverified"].items()}
    assert undisturbed["counts"] == expected | {"proved": said["proved_count"]}
    assert (undisturbed["files"], undisturbed["rows"], undisturbed["attempts"]) == (PARTS, 300, PARTS)
    assert undisturbed["lost"] == undisturbed["duplicates"] == undisturbed["present"] == 0


def test_a_worker_that_is_killed_changes_nothing(
    cluster: Cluster, archive: Path, undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    marker = Path(cluster.environment["WIREPROOF_TEST_MARKER"])
    assert not marker.exists()
    disturbed = cluster.run(
        f"wireproof.ray.run(cluster_work.KillsItsWorker({str(archive)!r}, {{}}, []), "
        f"wireproof.Archive({str(archive)!r}).files('events'), {str(tmp_path)!r}, 3, 60)"
    )
    assert marker.exists()
    assert disturbed == undisturbed | {"attempts": PARTS + 1, "lost": 1}


def test_a_program_that_is_killed_is_started_again_with_one_result(cluster: Cluster, archive: Path, tmp_path: Path) -> None:
    def transformed(to: Path) -> str:
        return f"wireproof.ray.transform({str(archive)!r}, cluster_work.slowly, {str(to)!r})"

    expected = cluster.run(transformed(tmp_path / "undisturbed"))
    to = tmp_path / "disturbed"
    program = cluster.submit(transformed(to), start_new_session=True)
    deadline = time.monotonic() + 60
    while not list(to.glob("*.parquet")) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(program.pid, signal.SIGKILL)
    program.communicate()
    stored = len(list(to.glob("*.parquet")))
    assert 0 < stored < PARTS
    again = cluster.run(transformed(to))
    assert again["digest"] == expected["digest"] and again["rows"] == expected["rows"] > 0
    assert again["files"] == again["attempts"] == PARTS
    # A task of the first program may have ended while it was killed.
    assert stored <= again["present"] + again["duplicates"] <= PARTS
    assert len(list(to.glob("*.parquet"))) == PARTS


def test_sql_is_computed_for_each_file(cluster: Cluster, archive: Path, tmp_path: Path) -> None:
    import pyarrow.parquet

    pytest.importorskip("duckdb")
    sql = "SELECT action, count(*) AS n FROM rows GROUP BY action ORDER BY action"
    found = cluster.run(f"wireproof.ray.transform({str(archive)!r}, {sql!r}, {str(tmp_path)!r}, columns=['action'])")
    counted = sum(sum(pyarrow.parquet.read_table(path)["n"].to_pylist()) for path in tmp_path.glob("*.parquet"))
    assert found["files"] == PARTS and counted == wireproof.Archive(archive).stats()["ops"]["rows"]


def test_an_audit_looks_at_every_file(cluster: Cluster, archive: Path, tmp_path: Path) -> None:
    found = cluster.run(f"wireproof.ray.audit({str(archive)!r}, {str(tmp_path)!r})")
    assert found["files"] == 2 * PARTS
    assert found["counts"] == {"intact": 2 * PARTS}
    assert wireproof.Archive(archive).stats()["ops"]["files"] == PARTS


def failed(cluster: Cluster, program: str) -> str:
    ended = cluster.submit(program)
    said = ended.communicate(timeout=120)[1]
    assert ended.returncode == 1
    return said.splitlines()[-1]


def test_a_file_that_no_worker_survives_ends_the_run(cluster: Cluster, archive: Path, tmp_path: Path) -> None:
    program = (
        f"wireproof.ray.run(cluster_work.AlwaysDies({str(archive)!r}, {{}}, []), "
        f"wireproof.Archive({str(archive)!r}).files('events')[:1], {str(tmp_path)!r}, 2, 60)"
    )
    said = failed(cluster, program)
    assert "ClusterError: events/" in said and "2 of 2 attempts failed" in said
    assert not list(tmp_path.glob("*.parquet"))


def test_an_attempt_that_takes_too_long_ends(cluster: Cluster, archive: Path, tmp_path: Path) -> None:
    program = (
        f"wireproof.ray.transform({str(archive)!r}, cluster_work.slowly, {str(tmp_path)!r}, attempts=1, timeout_seconds=0.01)"
    )
    assert "1 of 1 attempts failed: no result after 0.01 s" in failed(cluster, program)


def test_what_a_function_raises_is_raised(cluster: Cluster, archive: Path, tmp_path: Path) -> None:
    said = failed(cluster, f"wireproof.ray.transform({str(archive)!r}, cluster_work.fails, {str(tmp_path)!r})")
    assert "ValueError: " in said and "rows are of no use" in said


def test_a_folder_with_results_of_other_work_is_refused(cluster: Cluster, archive: Path, tmp_path: Path) -> None:
    cluster.run(f"wireproof.ray.audit({str(archive)!r}, {str(tmp_path)!r})")
    said = failed(cluster, f"wireproof.ray.reverify({str(archive)!r}, {str(tmp_path)!r})")
    assert "has results of other work" in said


def test_a_cluster_is_needed(archive: Path, tmp_path: Path) -> None:
    with pytest.raises(wireproof.ray.ClusterError, match="Ray is not connected"):
        wireproof.ray.audit(archive, tmp_path)


# The launcher


def test_the_cluster_listens_on_loopback_alone(cluster: Cluster, undisturbed: dict[str, Any]) -> None:
    places = listening(descendants(cluster.process.pid))
    assert {"gcs_server", "raylet"} <= {place.process for place in places}
    assert {place.address for place in places} == {"127.0.0.1"}
    assert cluster.address in {f"{place.address}:{place.port}" for place in places}


def test_the_token_is_of_the_user_alone(cluster: Cluster) -> None:
    assert cluster.token_file.stat().st_mode & 0o777 == 0o600
    assert len(cluster.token_file.read_text()) == 64


def test_a_program_without_the_token_gets_no_answer(cluster: Cluster, archive: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "token"
    wrong.touch(0o600)
    wrong.write_text("0" * 64)
    program = tmp_path / "program.py"
    program.write_text("import ray\nray.init(log_to_driver=False)\nprint(ray.cluster_resources())\n")
    arguments = ["submit", "--address", cluster.address, "--token-file", str(wrong), "--timeout", "60", str(program)]
    ended = launch(arguments, cluster.environment)
    printed, said = ended.communicate(timeout=90)
    assert ended.returncode != 0 and printed == "", printed
    assert "token" in said.lower() or "unauthenticated" in said.lower(), said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["up", "--interface", "no-such"], "--interface no-such: "),
        (["submit", "--address", "127.0.0.1:1", "program.py"], "--address 127.0.0.1:1: "),
        (["submit", "--address", "nowhere", "program.py"], "--address nowhere: "),
    ],
)
def test_a_wrong_argument_is_named(arguments: list[str], message: str, environment: dict[str, str]) -> None:
    ended = launch(arguments, environment)
    said = ended.communicate(timeout=60)[1]
    assert ended.returncode == 3 and f"wireproof.ray: {message}" in said


def test_a_token_that_others_can_read_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    readable = tmp_path / "token"
    readable.write_text("0" * 64)
    readable.chmod(0o644)
    ended = launch(["submit", "--address", cluster.address, "--token-file", str(readable), "program.py"], cluster.environment)
    assert "other users can read it" in ended.communicate(timeout=60)[1] and ended.returncode == 3


def test_a_program_is_ended_after_its_time(cluster: Cluster, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import time\ntime.sleep(600)\n")
    arguments = ["submit", "--address", cluster.address, "--token-file", str(cluster.token_file), "--timeout", "1"]
    ended = launch([*arguments, str(program)], cluster.environment)
    assert "the program was ended after 1 s" in ended.communicate(timeout=60)[1] and ended.returncode == 3


#: The launcher, for which one socket of the cluster is on all interfaces.
EXPOSED = """
import dataclasses, sys
from wireproof.ray import __main__ as launcher

def exposed(pids):
    places = listening(pids)
    return [*places, *(dataclasses.replace(place, address="0.0.0.0") for place in places if place.process == "raylet")]

listening, launcher.listening = launcher.listening, exposed
sys.exit(launcher.main(sys.argv[1:]))
"""


def test_a_cluster_that_listens_on_other_interfaces_is_ended(environment: dict[str, str], tmp_path: Path) -> None:
    temporary = Path("/tmp") / f"wireproof-ray-{os.getpid()}-other"
    arguments = ["up", "--interface", "lo", "--port", "0", "--cpus", "1", "--store-mib", "100"]
    arguments += ["--token-file", str(tmp_path / "token"), "--temporary", str(temporary)]
    ended = subprocess.run(
        [sys.executable, "-c", EXPOSED, *arguments], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    shutil.rmtree(temporary, ignore_errors=True)
    assert ended.returncode == 3 and ended.stdout == ""
    assert "not on 127.0.0.1 alone" in ended.stderr
