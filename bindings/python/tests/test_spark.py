"""`wireproof.spark` on a real Spark of three processes: two executors, of which one is killed."""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import wireproof
from archives import break_rules, findings, import_parts, replace_rows

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")
if shutil.which("java") is None:
    pytest.skip("java is missing", allow_module_level=True)

import wireproof.spark  # noqa: E402
from cluster_work import kills_its_executor  # noqa: E402
from wireproof.ray._sockets import descendants, listening  # noqa: E402

PARTS = 6


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from pyspark.sql import SparkSession

    folders = [str(Path(wireproof.__file__).parents[1]), str(Path(__file__).parent)]
    changed = {
        "PYTHONPATH": os.pathsep.join(folders),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_WORKER_DIR": str(tmp_path_factory.mktemp("spark")),
    }
    before = os.environ.copy()
    os.environ.update(changed)
    settings = wireproof.spark.bind_to_loopback() | {
        "spark.executor.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        # A task for each file.
        "spark.sql.files.openCostInBytes": str(128 << 20),
    }
    session = SparkSession.builder.master("local-cluster[2,1,1024]").config(map=settings).getOrCreate()
    yield session
    session.stop()
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="module")
def archive(command: str, frames: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of several files, one of which has rows that break rules."""
    archive = import_parts(command, frames, tmp_path_factory.mktemp("archive"), PARTS)
    replace_rows(archive, wireproof.Archive(archive).files("events")[0]["path"], break_rules)
    return archive


def rows_of(verdicts: Any) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, verdicts.collect()))


def test_an_executor_that_is_killed_changes_nothing(spark: Any, archive: Path, tmp_path: Path) -> None:
    undisturbed = wireproof.spark.reverify(spark, archive)
    expected = rows_of(undisturbed)
    assert len(expected) == 300
    marker, executors = tmp_path / "killed", executors_of(spark)
    disturbed = undisturbed.mapInArrow(kills_its_executor(str(marker)), undisturbed.schema)
    assert rows_of(disturbed) == expected
    assert marker.exists() and len(executors) == 2
    assert len(executors - executors_of(spark)) == 1, "one executor is another process"


def executors_of(spark: Any) -> set[int]:
    """The processes of the executors."""
    is_executor = "CoarseGrainedExecutorBackend"
    pids = descendants(os.getpid())
    return {pid for pid in pids if is_executor in Path(f"/proc/{pid}/cmdline").read_text()}


def test_each_verdict_is_that_of_the_command(command: str, spark: Any, archive: Path) -> None:
    said = findings(command, archive)
    rows = wireproof.spark.reverify(spark, archive).collect()
    refused = {(row.file, row.row, row.did, row.message) for row in rows if row.status == "refused"}
    assert refused == {(of["file"], of["row"], of["did"], of["message"]) for of in said["findings"]}
    assert len(refused) == 9
    counts = Counter(row.status for row in rows)
    assert counts == {"proved": said["proved_count"], "refused": said["refused_count"], "unverified": 1}


def test_verdicts_are_counted_by_status_and_code(spark: Any, archive: Path) -> None:
    counted = [tuple(row) for row in wireproof.spark.counts(wireproof.spark.reverify(spark, archive)).collect()]
    assert sum(count for *_, count in counted) == 300
    assert ("proved", "verified", 290) in counted and ("unverified", "signature/wrong", 1) in counted
    assert ("refused", "archive/form", 1) in counted
    assert counted == sorted(counted)


def test_a_policy_reaches_the_executors(spark: Any, archive: Path) -> None:
    verdicts = wireproof.spark.reverify(spark, archive, policy={"max_frame_bytes": 10})
    assert {row.code for row in verdicts.where("status = 'refused'").collect()} >= {"frame/limit", "archive/form"}
    assert verdicts.where("status = 'proved'").count() == 0
    with pytest.raises(TypeError, match="there is no such option"):
        wireproof.spark.reverify(spark, archive, policy={"accept_anything": True})


def test_a_changed_file_is_named_and_no_event_is_judged(command: str, spark: Any, archive: Path, tmp_path: Path) -> None:
    changed = Path(shutil.copytree(archive, tmp_path / "archive"))
    file = wireproof.Archive(changed).files("ops")[2]
    content = (changed / file["path"]).read_bytes()
    (changed / file["path"]).write_bytes(content[:-1] + b"\0")
    [row] = wireproof.spark.reverify(spark, changed).collect()
    [finding] = [of for of in findings(command, changed)["findings"] if of["code"] == "archive/file"]
    assert (row.status, row.code, row.row) == ("refused", "archive/file", None)
    # The command says besides who wrote the file, and what of it can be read.
    assert (row.file, row.code) == (finding["file"], finding["code"])
    assert finding["message"].startswith(row.message)


def test_an_archive_that_is_missing_is_an_error(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(wireproof.ArchiveError) as raised:
        wireproof.spark.reverify(spark, tmp_path / "missing")
    assert raised.value.code == "archive/missing"


def test_spark_listens_on_loopback_alone(spark: Any) -> None:
    places = listening(descendants(os.getpid()))
    assert sum(place.process == "java" for place in places) >= 3, "the driver and two executors"
    assert {place.address for place in places} == {"127.0.0.1"}
