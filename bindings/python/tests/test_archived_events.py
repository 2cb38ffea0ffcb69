"""Rows of archives are judged one by one as `archive verify` does."""

from __future__ import annotations

import hashlib
import hmac
import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

import wireproof
from archives import break_rules, findings, import_parts, replace_rows, swap_accounts

pa = pytest.importorskip("pyarrow")

from wireproof._archived_events import EventJudge  # noqa: E402
from wireproof.ray import _work  # noqa: E402


@pytest.fixture(scope="session")
def one_file(command: str, frames: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return import_parts(command, frames, tmp_path_factory.mktemp("one-file"), 1)


@pytest.fixture(scope="session")
def hostile(one_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive with rows that break rules, in a file with the right name; no test changes it."""
    archive = Path(shutil.copytree(one_file, tmp_path_factory.mktemp("hostile") / "archive"))
    [file] = wireproof.Archive(archive).files("events")
    replace_rows(archive, replace_rows(archive, file["path"], break_rules), swap_accounts)
    return archive


def verdicts(archive: Path, **policy: object) -> list[dict]:
    work = _work.Reverify(str(archive), policy, wireproof.Archive(archive)._erased())
    return [row for file in wireproof.Archive(archive).files("events") for row in work.result(file).to_pylist()]


def test_intact_events_are_proved(one_file: Path) -> None:
    rows = verdicts(one_file)
    assert len(rows) == 300
    assert {(row["status"], row["code"], row["stored"], row["form"]) for row in rows} == {
        ("proved", "verified", "verified", "full")
    }
    assert [row["row"] for row in rows] == list(range(300))


def test_each_refusal_is_that_of_the_command(command: str, hostile: Path) -> None:
    said = findings(command, hostile)
    rows = verdicts(hostile)
    refused = {(row["file"], row["row"], row["did"], row["code"]) for row in rows if row["status"] == "refused"}
    expected = {(of["file"], of["row"], of["did"], of["code"]) for of in said["findings"]}
    assert refused == expected and len(expected) == 11
    codes = {code for *_, code in expected}
    assert {"archive/form", "archive/kind", "event/future-rev", "signature/no-key", "signature/wrong"} <= codes
    counts = Counter(row["status"] for row in rows)
    assert counts["proved"] == said["proved_count"]
    assert Counter(row["code"] for row in rows if row["status"] == "unverified") == said["unverified"]


def test_messages_are_those_of_the_command(command: str, hostile: Path) -> None:
    expected = {(of["row"], of["message"]) for of in findings(command, hostile)["findings"]}
    found = {(row["row"], row["message"]) for row in verdicts(hostile) if row["status"] == "refused"}
    assert found == expected


def test_real_events_have_the_verdicts_of_the_command(command: str, fixtures: Path, tmp_path: Path) -> None:
    """Frames of a reference server, those of each half in files of their own."""
    pds = fixtures / "pds"
    keys = {}
    for account in json.loads((pds / "accounts.json").read_text()):
        operations = [entry["operation"] for entry in account["plcAuditLog"]]
        keys[account["did"]] = operations[-1]["verificationMethods"]["atproto"]
    (tmp_path / "accounts.json").write_text(json.dumps(keys))
    shutil.copy(pds / "frames.bin", tmp_path / "frames.bin")
    archive = import_parts(command, tmp_path / "frames.bin", tmp_path, 2)
    said = findings(command, archive)
    counts = Counter(row["status"] for row in verdicts(archive))
    assert said["findings"] == [] and said["proved_count"] > 1000
    assert counts["proved"] == said["proved_count"]
    assert counts["unverified"] == sum(said["unverified"].values())
    assert counts.total() == said["event_count"]


def test_a_policy_decides_what_is_accepted(hostile: Path, one_file: Path) -> None:
    assert {row["code"] for row in verdicts(one_file, max_frame_bytes=10)} == {"frame/limit"}
    wide = {row["row"]: row["code"] for row in verdicts(hostile, future_window=10**10)}
    assert wide[6] == "verified"
    with pytest.raises(TypeError, match="there is no such option"):
        verdicts(one_file, accept_anything=True)


def test_rows_of_an_erased_account_are_refused(one_file: Path) -> None:
    [file] = wireproof.Archive(one_file).files("events")
    did = file["dids"][0]
    erased = [(b"the key", [hmac.digest(b"the key", did.encode(), hashlib.sha256)])]
    rows = _work.Reverify(str(one_file), {}, erased).result(file).to_pylist()
    assert {row["code"] for row in rows if row["did"] == did} == {"archive/erased"}
    assert {row["code"] for row in rows if row["did"] != did} == {"verified"}


def test_a_row_is_judged_whatever_comes_before_it(one_file: Path) -> None:
    [file] = wireproof.Archive(one_file).files("events")
    stored = pa.parquet.read_table(one_file / file["path"]).combine_chunks()
    backwards = stored.take(list(range(stored.num_rows))[::-1]).to_batches()[0]
    judge = EventJudge({}, [])
    assert set(judge.judge(backwards)["code"]) == {"verified"}
    assert set(judge.judge(backwards)["code"]) == {"verified"}
    assert judge.judge(backwards.slice(0, 0))["code"] == []


def test_commits_in_compact_form_are_counted_and_left_to_the_command(one_file: Path, tmp_path: Path) -> None:
    archive = Path(shutil.copytree(one_file, tmp_path / "archive"))
    [file] = wireproof.Archive(archive).files("events")

    def thin(rows: list[dict]) -> None:
        for row in rows[:5]:
            row.update(form="compact", frame=None)

    replace_rows(archive, file["path"], thin)
    counts = Counter((row["status"], row["code"]) for row in verdicts(archive))
    assert counts == {("compact", None): 5, ("proved", "verified"): 295}


# What a result is


def test_work_that_is_done_twice_has_one_result(one_file: Path, tmp_path: Path) -> None:
    work = _work.Reverify(str(one_file), {}, [])
    [file] = wireproof.Archive(one_file).files("events")
    to = str(tmp_path / "results")

    class Slower(_work.Reverify):
        def result(self, file: dict) -> object:
            verdicts = super().result(file)
            assert _work.do(work, file, to)["state"] == "written"
            return verdicts

    late = _work.do(Slower(str(one_file), {}, []), file, to)
    again = _work.do(work, file, to)
    assert (late["state"], again["state"]) == ("duplicate", "present")
    assert late["sha256"] == again["sha256"] and late["counts"] == {"proved": 300}
    assert [path.name for path in (tmp_path / "results").glob("*.parquet")] == [late["name"]]


def test_an_audit_finds_what_the_log_says_otherwise(one_file: Path, hostile: Path, tmp_path: Path) -> None:
    def audited(archive: Path) -> list[tuple]:
        work = _work.Audit(str(archive))
        files = [file for table in ("events", "ops") for file in wireproof.Archive(archive).files(table)]
        rows = [work.result(file).to_pylist()[0] for file in files]
        return [(row["status"], row["code"]) for row in rows]

    assert audited(one_file) == [("intact", None)] * 2
    # The changed file has an account that the log does not have.
    assert audited(hostile) == [("refused", "archive/log"), ("intact", None)]
    changed = Path(shutil.copytree(one_file, tmp_path / "archive"))
    [file] = wireproof.Archive(changed).files("ops")
    content = (changed / file["path"]).read_bytes()
    (changed / file["path"]).write_bytes(content[:-1] + b"\0")
    assert audited(changed) == [("intact", None), ("refused", "archive/file")]


def test_a_changed_file_is_not_judged(one_file: Path, tmp_path: Path) -> None:
    changed = Path(shutil.copytree(one_file, tmp_path / "archive"))
    [file] = wireproof.Archive(changed).files("events")
    (changed / file["path"]).write_bytes(b"PAR1 and nothing else PAR1")
    [row] = verdicts(changed)
    assert (row["file"], row["row"], row["code"]) == (file["path"], None, "archive/file")
    (changed / file["path"]).unlink()
    with pytest.raises(wireproof.ArchiveError, match="the file is missing"):
        verdicts(changed)


def test_transformed_rows_are_those_that_are_shown(command: str, one_file: Path, tmp_path: Path) -> None:
    import subprocess

    pytest.importorskip("duckdb")
    changed = Path(shutil.copytree(one_file, tmp_path / "archive"))
    [file] = wireproof.Archive(changed).files("ops")
    did = file["dids"][0]
    sql = "SELECT did, count(*) AS n FROM rows GROUP BY did ORDER BY did"

    def dids(what: object) -> list[str]:
        return _work.Transform(str(changed), what, "ops", ("did",)).result(file)["did"].to_pylist()

    assert dids(sql)[0] == did and dids(lambda rows: rows)[0] == did
    subprocess.run([command, "archive", "hide", str(changed), "--did", did, "--reason", "test"], check=True, capture_output=True)
    assert did not in dids(sql) and did not in dids(lambda rows: rows)


# Files of an archive


def test_the_files_of_a_table_are_those_of_its_log(one_file: Path) -> None:
    archive = wireproof.Archive(one_file)
    [file] = archive.files("events")
    assert file["bytes"] == (one_file / file["path"]).stat().st_size
    assert file["rows"] == archive.stats()["events"]["rows"] and file["day"] == archive.stats()["events"]["first_day"]
    assert pa.table(archive.scan("events", files=[file["path"]])).num_rows == file["rows"]
    assert pa.table(archive.scan("events", files=[])).num_rows == 0
    assert archive.files("hidden") == []
    with pytest.raises(ValueError, match="argument 'files': ops/none is no file of events"):
        archive.scan("events", files=["ops/none"])
    with pytest.raises(wireproof.ArchiveError, match="events/none: the table has the file no longer"):
        archive.scan("events", files=["events/none"])
    with pytest.raises(TypeError, match="argument 'files': expected a sequence of paths, not str"):
        archive.scan("events", files="events/none")
