"""Repositories and records are proved or refused, with the codes of the command."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys

import pytest

import wireproof
from conftest import Exported

OTHER_KEY = "did:key:zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme"


def test_a_whole_repository_is_proved(exported: Exported) -> None:
    repo = wireproof.verify_repo(exported.car, exported.key, did=exported.did)
    assert (repo.did, repo.key, len(repo)) == (exported.did, exported.key, 300)
    records = list(repo.records())
    assert len(records) == 300
    paths = [record.path for record in records]
    assert paths == sorted(paths)
    assert sum(repo.collections().values()) == 300
    assert repr(repo) == f'Repo(did="{exported.did}", rev="{repo.rev}", records=300)'


def test_a_file_is_proved_as_its_bytes_are(exported: Exported) -> None:
    of_file = wireproof.verify_repo(exported.path, exported.key)
    of_bytes = wireproof.verify_repo(exported.car, exported.key)
    assert list(of_file.records()) == list(of_bytes.records())
    assert of_file.root == of_bytes.root


def test_records_are_found_by_path_and_by_collection(exported: Exported) -> None:
    repo = wireproof.verify_repo(exported.car, exported.key)
    first = next(iter(repo))
    assert repo[first.path] == first and first.path in repo
    assert repo.get("app.test.none/self") is None and "app.test.none/self" not in repo
    with pytest.raises(KeyError):
        repo["app.test.none/self"]
    for name, count in repo.collections().items():
        found = list(repo.records(name))
        assert len(found) == count and {record.collection for record in found} == {name}
    assert list(repo.records("app.test.none")) == []


def test_a_record_is_an_object_and_json_and_bytes(exported: Exported) -> None:
    repo = wireproof.verify_repo(exported.car, exported.key)
    record = next(iter(repo))
    assert record.uri == f"at://{exported.did}/{record.collection}/{record.rkey}"
    assert wireproof.libipld.encode_dag_cbor(record.value) == record.bytes
    assert record.value["$type"] == json.loads(record.to_json())["$type"]


def test_each_changed_byte_is_refused(exported: Exported) -> None:
    for at in range(0, len(exported.car), 997):
        changed = bytearray(exported.car)
        changed[at] ^= 1
        with pytest.raises(wireproof.WireproofError) as raised:
            wireproof.verify_repo(bytes(changed), exported.key)
        assert raised.value.code


def test_a_wrong_key_and_a_wrong_account_are_rejections(exported: Exported) -> None:
    with pytest.raises(wireproof.Rejection) as raised:
        wireproof.verify_repo(exported.car, OTHER_KEY)
    assert raised.value.code == "signature/wrong"
    with pytest.raises(wireproof.Rejection) as raised:
        wireproof.verify_repo(exported.car, exported.key, did="did:web:other.test")
    assert raised.value.code == "commit/did"


def test_the_key_comes_from_a_document(exported: Exported) -> None:
    document = {
        "id": exported.did,
        "verificationMethod": [
            {
                "id": f"{exported.did}#atproto",
                "type": "Multikey",
                "controller": exported.did,
                "publicKeyMultibase": exported.key.removeprefix("did:key:"),
            }
        ],
    }
    for form in (document, json.dumps(document), json.dumps(document).encode()):
        assert wireproof.verify_repo(exported.car, doc=form).did == exported.did
    of_another = json.loads(json.dumps(document).replace(exported.did, "did:web:other.test"))
    with pytest.raises(wireproof.Rejection) as raised:
        wireproof.verify_repo(exported.car, doc=of_another)
    assert raised.value.code == "commit/did"
    with pytest.raises(ValueError, match="argument 'doc': the document has no #atproto key"):
        wireproof.verify_repo(exported.car, doc=document | {"verificationMethod": []})


def test_wrong_arguments_are_type_errors_with_the_name_of_the_argument(exported: Exported) -> None:
    for arguments in ({}, {"key": OTHER_KEY, "doc": {}}):
        with pytest.raises(TypeError, match="exactly one of key, doc and plc_log"):
            wireproof.verify_repo(exported.car, **arguments)
    with pytest.raises(TypeError, match="'car'"):
        wireproof.verify_repo(7, OTHER_KEY)
    with pytest.raises(FileNotFoundError, match="missing.car"):
        wireproof.verify_repo("missing.car", OTHER_KEY)
    with pytest.raises(TypeError, match="'doc'"):
        wireproof.verify_repo(exported.car, doc=object())
    with pytest.raises(ValueError, match="argument 'key'"):
        wireproof.verify_repo(exported.car, "did:key:none")
    with pytest.raises(FileNotFoundError):
        wireproof.verify_repo(exported.path.with_name("none.car"), OTHER_KEY)


def test_results_are_pickled_and_proved_again(exported: Exported) -> None:
    repo = wireproof.verify_repo(exported.car, exported.key)
    again = pickle.loads(pickle.dumps(repo))
    assert (again.root, len(again)) == (repo.root, len(repo))
    record = next(iter(repo))
    assert pickle.loads(pickle.dumps(record)) == record
    with pytest.raises(wireproof.WireproofError) as raised:
        wireproof.verify_repo(b"", exported.key)
    error = pickle.loads(pickle.dumps(raised.value))
    assert (type(error), str(error), error.code, error.offset) == (
        type(raised.value),
        str(raised.value),
        raised.value.code,
        raised.value.offset,
    )


def test_the_slice_of_a_record_proves_it_or_its_absence(exported: Exported) -> None:
    repo = wireproof.verify_repo(exported.car, exported.key)
    record = next(iter(repo))
    proof = wireproof.verify_record(exported.car, record.uri, exported.key)
    assert proof and proof.record == record and proof.rev == repo.rev and proof.invalid is None
    absent = wireproof.verify_record(exported.car, "app.test.none/self", exported.key)
    assert not absent and absent.record is None and absent.did == exported.did
    with pytest.raises(wireproof.Rejection) as raised:
        wireproof.verify_record(exported.car, f"at://did:web:other.test/{record.path}", exported.key)
    assert raised.value.code == "commit/did"


def test_the_table_for_notebooks_escapes_what_strangers_wrote(exported: Exported) -> None:
    html = wireproof.verify_repo(exported.car, exported.key)._repr_html_()
    assert html.startswith("<table>") and html.endswith("</table>")
    assert "<th>300</th>" in html and exported.did in html


def test_progress_is_shown_where_tqdm_is_installed(exported: Exported, capsys: pytest.CaptureFixture[str]) -> None:
    repo = wireproof.verify_repo(exported.car, exported.key)
    assert len(list(repo.records(progress=True))) == 300
    assert "300/300" in capsys.readouterr().err


def test_progress_is_left_out_where_tqdm_is_missing(exported: Exported, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    repo = wireproof.verify_repo(exported.car, exported.key)
    assert len(list(repo.records(progress=True))) == 300


def test_real_repositories_are_proved_with_the_documents_of_their_accounts(fixtures) -> None:
    accounts = json.loads((fixtures / "pds" / "accounts.json").read_text())
    documents = {account["did"]: account["didDoc"] for account in accounts}
    logs = {account["did"]: account["plcAuditLog"] for account in accounts}
    cars = sorted((fixtures / "pds").glob("*.car"))
    assert cars
    for car in cars:
        did = car.stem.replace("_", ":")
        repo = wireproof.verify_repo(car, doc=documents[did])
        assert repo.did == did and len(list(repo.records())) == len(repo)
        again = wireproof.verify_repo(car, plc_log=logs[did], did=did, threads=2)
        assert (again.root, again.key) == (repo.root, repo.key)


def test_the_hostile_repositories_have_the_codes_of_the_command(command: str, exported: Exported, tmp_path) -> None:
    cases = {}
    for number, at in enumerate(range(5, len(exported.car), len(exported.car) // 40)):
        changed = bytearray(exported.car)
        changed[at] ^= 0x41
        cases[tmp_path / f"{number}.car"] = bytes(changed)
    cases[tmp_path / "short.car"] = exported.car[:-40]
    cases[tmp_path / "empty.car"] = b""
    for path, car in cases.items():
        path.write_bytes(car)
        arguments = [command, "verify", str(path), "--key", exported.key, "--json"]
        printed = json.loads(subprocess.run(arguments, capture_output=True, text=True).stdout)
        code = printed["findings"][0]["code"]
        with pytest.raises(wireproof.WireproofError) as raised:
            wireproof.verify_repo(car, exported.key)
        assert raised.value.code == code, path.name
