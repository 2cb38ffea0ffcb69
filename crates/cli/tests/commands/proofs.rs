//! `verify`, `repo` and `plc verify` on files: output and exit codes.

use std::fs;
use std::path::PathBuf;

use assert_cmd::assert::Assert;
use atproto::commit::UnsignedCommit;
use atproto::mst::{Tree, canonical};
use atproto::plc::{AccountData, UnsignedOperation, Update};
use atproto::repo::Repository;
use codec::car;
use codec::cbor::Arena;
use codec::cid::{Cid, Codec};
use codec::json as codec_json;
use crypto::{Curve, SecretKey};
use serde_json::Value;
use simnet::firehose;
use simnet::hostile::{self, CaseSet};
use simnet::repository_corpus::{BlockOrder, Corpus, Manifest, RepositoryDetails, Spec};
use tempfile::TempDir;

use crate::{json, json_lines, run, stderr, stdout, text};

/// A repository of a hundred records in a folder of its own.
struct Made {
    folder: TempDir,
    car: PathBuf,
    manifest: Manifest,
}

fn made(order: BlockOrder) -> Made {
    let corpus = Corpus::generate(&Spec { records: 100, order, ..Spec::quick() });
    let (folder, bytes) = (tempfile::tempdir().unwrap(), corpus.to_file());
    let car = folder.path().join("repository.car");
    fs::write(&car, &bytes).unwrap();
    Made { car, manifest: corpus.manifest(&bytes), folder }
}

impl Made {
    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, content).unwrap();
        path
    }

    fn verify(&self, args: &[&str]) -> Assert {
        run(&[&["verify", text(&self.car)], args].concat())
    }
}

#[test]
fn a_whole_repository_is_verified_under_its_key_in_any_order_of_blocks() {
    for order in [BlockOrder::Streamable, BlockOrder::Shuffled] {
        let made = made(order);
        let proof =
            made.verify(&["--key", &made.manifest.details.signing_key, "--rebuild"]).success();
        let printed = stdout(&proof);
        for part in ["CAR and hashes", "signature", "tree", "rebuild", "records", "total"] {
            assert!(printed.contains(part), "{printed}");
        }
        assert!(
            printed.contains("records  100\n") && printed.contains(&made.manifest.details.did),
            "{printed}"
        );
        assert!(printed.contains("flagged  no record"), "{printed}");
        assert_eq!(stderr(&proof), "");
    }
}

#[test]
fn the_proof_as_json_has_the_repository_and_the_time_of_each_stage() {
    let made = made(BlockOrder::Streamable);
    let proof =
        json(&made.verify(&["--key", &made.manifest.details.signing_key, "--json"]).success());
    assert_eq!(proof["verified"], true);
    assert_eq!(proof["repository"]["did"], *made.manifest.details.did);
    assert_eq!(proof["repository"]["data"], *made.manifest.details.data);
    assert_eq!(proof["repository"]["records"], 100);
    assert_eq!(proof["repository"]["flagged"], serde_json::json!({ "records": 0 }));
    assert_eq!(proof["repository"]["signature_checked"], true);
    let stages: Vec<&str> = proof["stages"].as_array().unwrap().iter().map(stage).collect();
    assert_eq!(stages, ["parse", "signature", "tree", "records"]);
}

fn stage(stage: &Value) -> &str {
    stage["stage"].as_str().unwrap()
}

/// A case of the hostile set.
fn hostile_case(name: &str) -> hostile::Case {
    let set = CaseSet::generate(&hostile::Spec::default());
    let case = set.cases().iter().find(|case| case.name == name);
    case.expect("a case of this name").clone()
}

#[test]
fn a_repository_with_an_invalid_record_is_verified_and_refused_with_strict_records() {
    let (case, folder) = (hostile_case("record/unsorted"), tempfile::tempdir().unwrap());
    let car = folder.path().join("repository.car");
    fs::write(&car, &case.bytes).unwrap();
    let args = ["verify", text(&car), "--key", &case.signing_key];
    let proof = json(&run(&[&args[..], &["--json"]].concat()).success());
    assert_eq!(proof["verified"], true);
    let invalid = &proof["repository"]["invalid"];
    assert_eq!(
        (&invalid["records"], &invalid["first"]["code"]),
        (&1.into(), &"record/cbor".into())
    );
    assert!(invalid["first"]["rkey"].is_string() && invalid["first"]["offset"].is_u64());
    assert_eq!(proof["repository"]["flagged"]["records"], 0);
    let printed = stdout(&run(&args).success());
    assert!(printed.contains("invalid  1 invalid, the first"), "{printed}");
    let first = &invalid["first"];
    let path = [&first["collection"], &first["rkey"]].map(|part| part.as_str().unwrap()).join("/");
    let slice = [&args[..], &["--record", &path, "--json"]].concat();
    let proof = &json(&run(&slice).success())["record_proof"];
    assert_eq!((&proof["present"], &proof["cid"]), (&true.into(), &first["cid"]));
    assert_eq!(proof["invalid"]["bytes"]["$bytes"], "omUkdHlwZWVhLmIuY2R0ZXh0ZWhlbGxv");
    assert!(proof.get("record").is_none(), "{proof}");
    run(&[&slice[..], &["--strict-records"]].concat()).code(1);
    let refused = run(&[&args[..], &["--strict-records"]].concat()).code(1);
    assert!(stderr(&refused).contains("record/cbor"), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("app.bsky.feed.like/"), "{}", stderr(&refused));
}

#[test]
fn the_bytes_of_an_invalid_record_are_read_from_its_repository() {
    let (case, folder) = (hostile_case("record/unsorted"), tempfile::tempdir().unwrap());
    let car = folder.path().join("repository.car");
    fs::write(&car, &case.bytes).unwrap();
    let listed = stdout(&run(&["repo", "ls", text(&car)]).success());
    let (path, cid) = listed.trim_end().split_once('\t').unwrap();
    let refused = run(&["repo", "get", text(&car), path]).code(1);
    assert!(stderr(&refused).contains("--raw"), "{}", stderr(&refused));
    let raw = run(&["repo", "get", text(&car), path, "--raw"]).success();
    let bytes = &raw.get_output().stdout;
    assert_eq!(Cid::of(Codec::DagCbor, bytes).to_string(), cid);
    let car_out = run(&["repo", "export", text(&car)]).success();
    let read = Repository::read(&car_out.get_output().stdout, &car::Options::default()).unwrap();
    assert_eq!(read.records().next().unwrap().unwrap().block, *bytes);
    let line = json(&run(&["repo", "export", text(&car), "--format", "ndjson"]).success());
    assert_eq!((&line["cid"], &line["invalid"]["code"]), (&cid.into(), &"record/cbor".into()));
    let arena = Arena::new();
    let written = codec_json::decode(&line["invalid"]["bytes"].to_string(), &arena).unwrap();
    assert_eq!(written.as_bytes(), Some(&bytes[..]));
    assert!(line.get("record").is_none(), "{line}");
}

/// Items that the data model has no map for: in JSON they would be links or bytes, or nothing that can be read.
const WITHOUT_JSON: [&[u8]; 4] = [
    b"\xa1\x65$link\x64text",
    b"\xa1\x65$link\x07",
    b"\xa1\x66$bytes\x62hi",
    b"\xa2\x61a\x01\x65$link\x61b",
];

/// A repository in which the second record is `odd`, among two usual ones; with the key of its account.
fn with_record(odd: &[u8]) -> (TempDir, PathBuf, String) {
    let secret = SecretKey::from_bytes(Curve::K256, &[7; 32]).unwrap();
    let records =
        [("a.b.c/1", &b"\xa1\x61n\x01"[..]), ("a.b.c/2", odd), ("a.b.c/3", b"\xa1\x61n\x03")];
    let named = |block: &[u8]| (Cid::of(Codec::DagCbor, block), block.to_vec());
    let mut tree = Tree::empty();
    for (path, record) in records {
        tree.insert(path.as_bytes(), named(record).0).unwrap();
    }
    let (did, rev) = ("did:plc:wq4aajammjtxdomz3e23667t", "3mptbypluud2a");
    let unsigned = UnsignedCommit { did, rev, data: tree.root(), prev: None };
    let commit = named(&unsigned.with_signature(&secret.sign(&unsigned.to_bytes())));
    let mut writer = car::Writer::new(Vec::new(), &[commit.0]).unwrap();
    let records = records.map(|(_, record)| named(record));
    for (cid, block) in [commit].into_iter().chain(tree.collect_blocks()).chain(records) {
        writer.block(&cid, &block).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let car = folder.path().join("repository.car");
    fs::write(&car, writer.into_inner()).unwrap();
    (folder, car, secret.public_key().to_did_key())
}

#[test]
fn a_record_without_a_json_form_is_shown_as_its_bytes_and_costs_no_other_record_anything() {
    for inner in WITHOUT_JSON {
        for odd in [inner.to_vec(), [b"\xa1\x61x", inner].concat()] {
            let (_folder, car, key) = with_record(&odd);
            let exported = run(&["repo", "export", text(&car), "--format", "ndjson"]).success();
            let lines = json_lines(&exported);
            assert_eq!(lines.len(), 3);
            assert_eq!(
                (&lines[0]["record"]["n"], &lines[2]["record"]["n"]),
                (&1.into(), &3.into())
            );
            assert_invalid(&lines[1], &odd);

            let verify =
                |more: &[&str]| run(&[&["verify", text(&car), "--key", &key], more].concat());
            let proof = json(&verify(&["--strict-records", "--json"]).success());
            assert_eq!(proof["repository"]["flagged"]["records"], 3);
            assert_eq!(proof["repository"]["invalid"]["records"], 0);
            let record = json(&verify(&["--record", "a.b.c/2", "--json"]).success());
            assert_eq!(record["record_proof"]["present"], true);
            assert_invalid(&record["record_proof"], &odd);
            let printed = stdout(&verify(&["--record", "a.b.c/2"]).success());
            assert!(printed.contains("invalid  (data/key): "), "{printed}");
            let record = json(&verify(&["--record", "a.b.c/3", "--json"]).success());
            assert_eq!(record["record_proof"]["record"]["n"], 3);

            let document = json(&run(&["inspect", text(&car), "--json"]).success());
            let cid = Cid::of(Codec::DagCbor, &odd).to_string();
            let blocks = document["blocks"].as_array().unwrap();
            let (shown, others): (Vec<_>, Vec<_>) =
                blocks.iter().partition(|block| block["cid"] == cid);
            assert_eq!(shown[0]["value"], Value::Null);
            assert_invalid(shown[0], &odd);
            assert!(others.iter().all(|block| block["value"].is_object()));
            run(&["repo", "get", text(&car), "a.b.c/2"]).code(1);
            let raw = run(&["repo", "get", text(&car), "a.b.c/2", "--raw"]).success();
            assert_eq!(raw.get_output().stdout, odd);
        }
    }
}

/// Asserts that an object has the bytes of a record without a JSON form, and no record.
fn assert_invalid(object: &Value, bytes: &[u8]) {
    let arena = Arena::new();
    let written = codec_json::decode(&object["invalid"]["bytes"].to_string(), &arena).unwrap();
    assert_eq!((&object["invalid"]["code"], written.as_bytes()), (&"data/key".into(), Some(bytes)));
    assert!(object.get("record").is_none(), "{object}");
}

#[test]
fn the_key_may_come_from_a_document_or_from_the_keys_of_many_accounts() {
    let made = made(BlockOrder::Streamable);
    let RepositoryDetails { did, signing_key, did_document, .. } = &made.manifest.details;
    let document = made.file("did.json", serde_json::to_vec(did_document).unwrap());
    made.verify(&["--did-doc", text(&document)]).success();
    let keys = made.file("accounts.json", format!(r#"{{"{did}": "{signing_key}"}}"#));
    made.verify(&["--keys", text(&keys)]).success();
    let nobody = made.file("nobody.json", "{}");
    let refused = made.verify(&["--keys", text(&nobody)]).code(1);
    assert!(stderr(&refused).contains("no key of that account"), "{}", stderr(&refused));
}

#[test]
fn a_repository_of_another_key_or_account_is_refused_by_name() {
    let made = made(BlockOrder::Streamable);
    let stranger = SecretKey::from_bytes(Curve::K256, &[7; 32]).unwrap().public_key();
    let refused = made.verify(&["--key", &stranger.to_did_key()]).code(1);
    assert!(stderr(&refused).contains("signature/wrong"), "{}", stderr(&refused));
    let key = &made.manifest.details.signing_key;
    let refused = made.verify(&["--key", key, "--did", "did:plc:ewvi7nxzyoun6zhxrhs64oiz"]).code(1);
    assert!(stderr(&refused).contains("commit/did"), "{}", stderr(&refused));
}

#[test]
fn a_mistyped_key_is_exit_code_2_with_the_name_of_the_option() {
    let made = made(BlockOrder::Streamable);
    let key = &made.manifest.details.signing_key;
    let mistyped = key.replacen("did:key:z", "did:key:z0", 1);
    for mistyped in [&*mistyped, &key[..key.len() - 1], "did:web:ada.test", "zz", ""] {
        let assert = made.verify(&["--key", mistyped]).code(2);
        let message = stderr(&assert);
        let start = format!("wireproof: --key {mistyped}: not a key: ");
        assert!(message.starts_with(&start), "{message}");
        assert!(stdout(&assert).is_empty(), "{}", stdout(&assert));
    }
    // A valid key of another account is not a typing mistake.
    let stranger = SecretKey::from_bytes(Curve::K256, &[7; 32]).unwrap().public_key();
    made.verify(&["--key", &stranger.to_did_key()]).code(1);
}

#[test]
fn the_signature_is_left_out_only_with_the_option_and_the_proof_says_so() {
    let made = made(BlockOrder::Streamable);
    made.verify(&[]).code(2);
    let proof = made.verify(&["--without-signature"]).success();
    let text = stdout(&proof);
    assert!(text.contains("\nresult   consistent, signature not checked: the whole"), "{text}");
    assert!(!text.contains("proved"), "{text}");
    let report = json(&made.verify(&["--without-signature", "--json"]).success());
    assert_eq!((&report["verified"], &report["checked"]), (&false.into(), &true.into()));
    assert_eq!(report["repository"]["signature_checked"], false);
    let key = &made.manifest.details.signing_key;
    let report = json(&made.verify(&["--key", key, "--json"]).success());
    assert_eq!((&report["verified"], &report["checked"]), (&true.into(), &true.into()));
}

#[test]
fn a_cut_repository_is_refused_with_the_first_finding_or_all() {
    let made = made(BlockOrder::Streamable);
    let key = &made.manifest.details.signing_key;
    let bytes = fs::read(&made.car).unwrap();
    fs::write(&made.car, &bytes[..bytes.len() - 1]).unwrap();
    let refused = made.verify(&["--key", key]).code(1);
    assert!(stderr(&refused).contains("car/truncated"), "{}", stderr(&refused));
    assert_eq!(stderr(&refused).lines().count(), 1);

    // The archive is cut between two blocks.
    let cut = made.file("cut.car", with_blocks(&bytes, |at, _| at < 80));
    let all = run(&["verify", text(&cut), "--key", key, "--all", "--json"]).code(1);
    let report = json(&all);
    assert_eq!(report["verified"], false);
    let findings = report["findings"].as_array().unwrap();
    assert!(findings.len() >= 2, "{report}");
    for finding in findings {
        let code = finding["code"].as_str().unwrap();
        assert!(["tree/missing-node", "record/missing"].contains(&code), "{finding}");
    }
}

#[test]
fn with_all_every_fault_is_printed_however_many_there_are() {
    let corpus = Corpus::generate(&Spec { records: 12_000, ..Spec::quick() });
    let folder = tempfile::tempdir().unwrap();
    let car = folder.path().join("without-records.car");
    let is_node = |block: &[u8]| block.starts_with(b"\xa2\x61e");
    fs::write(&car, with_blocks(&corpus.to_file(), |at, block| at == 0 || is_node(block))).unwrap();
    let verify = |option: &str| run(&["verify", text(&car), "--without-signature", option]).code(1);
    let printed = stdout(&verify("--all"));
    assert_eq!(printed.lines().filter(|line| line.starts_with("record/missing: ")).count(), 12_000);
    let first = json(&verify("--json"));
    assert_eq!(first["findings"].as_array().unwrap().len(), 1);
}

/// The archive with some of its blocks, chosen by number and data.
fn with_blocks(bytes: &[u8], is_kept: impl Fn(usize, &[u8]) -> bool) -> Vec<u8> {
    let sections = car::read(bytes, &car::Options::default()).unwrap();
    let roots: Vec<_> = sections.roots.iter().map(|root| root.to_cid().unwrap()).collect();
    let mut writer = car::Writer::new(Vec::new(), &roots).unwrap();
    let blocks = sections.blocks.iter().enumerate();
    for (_, block) in blocks.filter(|(at, block)| is_kept(*at, block.data)) {
        writer.block(&block.cid.to_cid().unwrap(), block.data).unwrap();
    }
    writer.into_inner()
}

/// The slice that proves the content of a path: commit, nodes on the path, and the record if there is one.
fn slice(made: &Made, path: &str) -> PathBuf {
    let bytes = fs::read(&made.car).unwrap();
    let repository = Repository::read(&bytes, &car::Options::default()).unwrap();
    let data = repository.commit().data;
    let found = canonical::search(data, &repository, path.as_bytes()).unwrap();
    let mut blocks = vec![repository.commit_block()];
    blocks.extend(found.nodes.iter().map(|(_, block)| *block));
    let record = found.value.and_then(|value| value.to_cid());
    blocks.extend(record.map(|cid| repository.block(&cid).unwrap()));
    made.file("slice.car", with_blocks(&bytes, |_, block| blocks.contains(&block)))
}

#[test]
fn the_slice_of_a_record_proves_offline_that_it_is_present_or_absent() {
    let made = made(BlockOrder::Shuffled);
    let RepositoryDetails { did, signing_key, did_document, .. } = &made.manifest.details;
    let listed = stdout(&run(&["repo", "ls", text(&made.car)]).success());
    let (present, cid) = listed.lines().nth(40).unwrap().split_once('\t').unwrap();
    let document = made.file("did.json", serde_json::to_vec(did_document).unwrap());
    for (path, expected) in [(present, Some(cid)), ("app.bsky.feed.post/none", None)] {
        let slice = slice(&made, path);
        let uri = format!("at://{did}/{path}");
        for signer in [["--key", signing_key], ["--did-doc", text(&document)]] {
            for record in [path, &uri] {
                let args = [&["verify", text(&slice), "--record", record][..], &signer].concat();
                let printed = stdout(&run(&args).success());
                let claim = match expected {
                    Some(cid) => format!("proved   the record at {path}\ncid      {cid}\n"),
                    None => format!("proved   that there is no record at {path}\n"),
                };
                assert!(printed.contains(&claim), "{printed}");
                let report = json(&run(&[&args[..], &["--json"]].concat()).success());
                let proof = &report["record_proof"];
                assert_eq!((&report["verified"], &proof["did"]), (&true.into(), &(**did).into()));
                assert_eq!(proof["present"], expected.is_some());
                assert_eq!(proof["cid"].as_str(), expected);
                assert_eq!(proof["extra_blocks"], 0);
            }
        }
        let other = if expected.is_some() { "app.bsky.feed.post/none" } else { present };
        let args = ["verify", text(&slice), "--record", other, "--key", signing_key, "--json"];
        let code = &json(&run(&args).code(1))["findings"][0]["code"];
        assert!(
            ["tree/missing-node", "record/missing"].contains(&code.as_str().unwrap()),
            "{code}"
        );
    }
}

#[test]
fn the_slice_of_a_record_is_refused_under_another_key_or_for_another_account() {
    let made = made(BlockOrder::Streamable);
    let RepositoryDetails { did, signing_key, did_document, .. } = &made.manifest.details;
    let document = made.file("did.json", serde_json::to_vec(did_document).unwrap());
    let path = "app.bsky.feed.post/none";
    let slice = slice(&made, path);
    let verify = |args: &[&str]| run(&[&["verify", text(&slice), "--record"], args].concat());
    let stranger = SecretKey::from_bytes(Curve::K256, &[7; 32]).unwrap().public_key().to_did_key();
    assert!(stderr(&verify(&[path, "--key", &stranger]).code(1)).contains("signature/wrong"));
    let other = format!("at://{OTHER_DID}/{path}");
    assert!(stderr(&verify(&[&other, "--key", signing_key]).code(1)).contains("commit/did"));
    let uri = format!("at://{did}/{path}");
    for (args, what) in [
        (&[&*other, "--did-doc", text(&document)][..], "the given key belongs to"),
        (&[&*uri, "--key", signing_key, "--did", OTHER_DID], "the given key belongs to"),
        (&["at://ada.example.com/a.b.c/d", "--key", signing_key], "by its DID"),
        (&["at://did:web:example.com", "--key", signing_key], "name a record"),
        (&["no path", "--key", signing_key], "--record no path"),
        (&[&*uri, "--without-signature"], "under a key"),
        (&[&*uri, "--key", signing_key, "--rebuild"], "whole repositories"),
        (&[&*uri, "--key", signing_key, "--all"], "whole repositories"),
        (&[&*uri], "under a key"),
    ] {
        let refused = verify(args).code(2);
        assert!(stderr(&refused).contains(what), "{args:?}: {}", stderr(&refused));
    }
    let keys = made.file("accounts.json", format!(r#"{{"{did}": "{signing_key}"}}"#));
    verify(&[&uri, "--keys", text(&keys)]).success();
    verify(&[path, "--keys", text(&keys)]).code(2);
    verify(&[&other, "--keys", text(&keys)]).code(1);
}

const OTHER_DID: &str = "did:plc:ewvi7nxzyoun6zhxrhs64oiz";

#[test]
fn records_are_listed_got_and_exported() {
    let made = made(BlockOrder::Shuffled);
    let car = text(&made.car);
    let listed = stdout(&run(&["repo", "ls", car]).success());
    assert_eq!(listed.lines().count(), 100);
    assert_eq!(json_lines(&run(&["repo", "ls", car, "--json"]).success()).len(), 100);
    assert!(listed.lines().is_sorted());
    let (path, cid) = listed.lines().next().unwrap().split_once('\t').unwrap();

    let record = json(&run(&["repo", "get", car, path]).success());
    assert_eq!(record["$type"], *path.split_once('/').unwrap().0);
    let uri = format!("at://{}/{path}", made.manifest.details.did);
    assert_eq!(json(&run(&["repo", "get", car, &uri]).success()), record);
    run(&["repo", "get", car, "app.bsky.feed.post/none"]).code(1);
    run(&["repo", "get", car, "at://did:plc:ewvi7nxzyoun6zhxrhs64oiz/a.b.c/d"]).code(2);

    let first = &json_lines(&run(&["repo", "export", car, "--format", "ndjson"]).success())[0];
    assert_eq!((&first["cid"], &first["record"]), (&Value::from(cid), &record));
    let (collection, rkey) = path.split_once('/').unwrap();
    assert_eq!((&first["collection"], &first["rkey"]), (&collection.into(), &rkey.into()));
}

#[test]
fn a_repository_is_exported_in_streamable_order_whatever_order_it_had() {
    let [shuffled, streamable] = [BlockOrder::Shuffled, BlockOrder::Streamable].map(made);
    let out = shuffled.folder.path().join("out.car");
    run(&["repo", "export", text(&shuffled.car), "--out", text(&out)]).success();
    assert_eq!(fs::read(out).unwrap(), fs::read(&streamable.car).unwrap());
}

#[test]
fn stats_count_what_the_manifest_counts() {
    let made = made(BlockOrder::Streamable);
    let stats = json(&run(&["repo", "stats", text(&made.car), "--json"]).success());
    assert_eq!(stats["records"], 100);
    assert_eq!(stats["record_bytes"], made.manifest.counts.record_bytes);
    assert_eq!(stats["block_count"], made.manifest.counts.blocks);
    let collections = stats["collections"].as_array().unwrap();
    let sum: u64 = collections.iter().map(|of| of["records"].as_u64().unwrap()).sum();
    assert_eq!(sum, 100);
    assert!(stdout(&run(&["repo", "stats", text(&made.car)]).success()).contains("tree"));
}

#[test]
fn the_difference_of_two_states_is_listed_record_by_record() {
    let spec = firehose::Spec::quick();
    let stream = firehose::Corpus::generate(&spec, &mut |_, _| {});
    let before = stream.repository(0);
    let mut after = before.clone();
    let key = before.tree().entries()[0].key.clone();
    let write = simnet::repository::RecordWrite {
        action: atproto::event::Action::Delete,
        path: before.path(&key).unwrap(),
    };
    after.commit(&[write], simnet::time::later(before.rev(), 1));
    let folder = tempfile::tempdir().unwrap();
    let [old, new] = [("old.car", &before), ("new.car", &after)].map(|(name, repository)| {
        let path = folder.path().join(name);
        fs::write(&path, repository.export_car()).unwrap();
        path
    });
    let printed = stdout(&run(&["repo", "diff", text(&old), text(&new)]).success());
    assert!(printed.starts_with(&format!("-\t{key}\t")), "{printed}");
    assert_eq!(printed.lines().count(), 1);
    let line = json(&run(&["repo", "diff", text(&new), text(&old), "--json"]).success());
    let (collection, rkey) = key.split_once('/').unwrap();
    assert_eq!((&line["collection"], &line["rkey"]), (&collection.into(), &rkey.into()));
    assert_eq!(line["action"], "create");
    assert_eq!(stdout(&run(&["repo", "diff", text(&old), text(&old)]).success()), "");
}

/// The plain log of an identity of one operation.
fn log() -> String {
    let key = SecretKey::from_bytes(Curve::K256, &[7; 32]).unwrap();
    let data = AccountData {
        rotation_keys: vec![key.public_key().to_did_key()],
        ..AccountData::default()
    };
    let genesis = UnsignedOperation::Update(Update { data, prev: None });
    let sig = key.sign(&genesis.to_bytes());
    format!("[{}]", genesis.with_signature(sig).to_json())
}

#[cfg(target_os = "linux")]
#[test]
fn a_log_or_document_beyond_its_limit_is_not_read_into_memory() {
    let made = made(BlockOrder::Streamable);
    let long = made.file("long.json", "");
    let file = fs::File::options().write(true).open(&long).unwrap();
    file.set_len(512 << 20).unwrap();
    for args in [
        &["plc", "verify", text(&long)][..],
        &["verify", text(&made.car), "--plc-log", text(&long)],
        &["verify", text(&made.car), "--did-doc", text(&long)],
    ] {
        run(args).code(1);
        let peak = crate::peak_bytes(args);
        assert!(peak < 100 << 20, "{args:?}: {peak}");
    }
}

#[test]
fn a_valid_log_is_summarized_and_an_invalid_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.json");
    fs::write(&path, log()).unwrap();
    let printed = stdout(&run(&["plc", "verify", text(&path)]).success());
    assert!(printed.starts_with("did:plc:") && printed.contains(": valid\n"), "{printed}");
    let printed = json(&run(&["plc", "verify", text(&path), "--json"]).success());
    assert_eq!(printed["operations"].as_array().unwrap().len(), 1);

    let other = ["plc", "verify", text(&path), "--did", "did:plc:ewvi7nxzyoun6zhxrhs64oiz"];
    assert!(stderr(&run(&other).code(1)).contains("plc/did"));
    fs::write(&path, log().replace("plc_operation", "plc_tombstone")).unwrap();
    run(&["plc", "verify", text(&path)]).code(1);
}

#[test]
fn every_command_with_json_prints_a_document_when_it_refuses() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let (empty, bytes) = (write("log.json", b"[]"), write("bytes", b"\x0a\x01\x02"));
    let keys = write("keys.json", b"{}");
    let missing = folder.path().join("missing");
    let cases: [(&[&str], i32, &str); 8] = [
        (&["plc", "verify", text(&empty)], 1, "/findings/0/code"),
        (&["plc", "verify", text(&missing)], 4, "/error"),
        (&["inspect", text(&bytes)], 1, "/error"),
        (&["inspect", text(&missing)], 4, "/error"),
        (&["repo", "stats", text(&bytes)], 1, "/error"),
        (&["frames", "verify", text(&bytes), "--keys", text(&keys)], 1, "/error"),
        (&["frames", "verify", text(&missing), "--keys", text(&keys)], 4, "/error"),
        (&["verify", text(&bytes), "--without-signature"], 1, "/findings/0/code"),
    ];
    for (args, code, place) in cases {
        let output = run(&[args, &["--json"]].concat()).code(code);
        let document = json(&output);
        assert!(document.pointer(place).is_some_and(Value::is_string), "{args:?}: {document}");
        assert!(!stderr(&output).is_empty());
    }
}

#[test]
fn repo_refuses_each_path_that_verify_refuses() {
    let set = CaseSet::generate(&hostile::Spec::default());
    let folder = tempfile::tempdir().unwrap();
    let car = folder.path().join("repository.car");
    let cases: Vec<_> =
        set.cases().iter().filter(|case| case.code == Some("record/path")).collect();
    assert!(!cases.is_empty());
    for case in cases {
        fs::write(&car, &case.bytes).unwrap();
        let file = text(&car);
        for args in [
            &["repo", "ls", file][..],
            &["repo", "stats", file],
            &["repo", "get", file, "a.b.c/d"],
            &["repo", "diff", file, file],
            &["repo", "export", file, "--out", "/dev/null"],
            &["repo", "export", file, "--format", "ndjson", "--out", "/dev/null"],
        ] {
            let message = stderr(&run(args).code(1));
            assert!(message.contains("record path") || message.contains("not text"), "{message}");
        }
    }
}
