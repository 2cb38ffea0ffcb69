//! Our own runner: every variant of every task against the counts of simulated corpora.

use std::collections::BTreeMap;
use std::time::Instant;

use ::nostr::{self as events, Value};
use atproto::corpus;
use atproto::event::{Decoder, Event, Info, Options};
use nostr_formats::Format;
use protocol::{Proof, Request};
use simnet::keys::Curve;
use simnet::{
    firehose, hostile as hostile_set, nostr_events, nostr_sampling, repository_corpus,
    schnorr_events, signed_commits, tree_records,
};

use super::*;

fn answers(requests: &str) -> Vec<serde_json::Value> {
    let mut answers = Vec::new();
    serve(requests.as_bytes(), &mut answers).unwrap();
    let lines = str::from_utf8(&answers).unwrap().lines();
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The units and counts of every variant of `task` on `file`.
fn prove_all(task: Task, file: &[u8]) -> Vec<(String, u64, serde_json::Value)> {
    prove_all_of(task, &[file])
}

fn prove_all_of(task: Task, files: &[&[u8]]) -> Vec<(String, u64, serde_json::Value)> {
    let dir = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> = (0..files.len()).map(|n| dir.path().join(n.to_string())).collect();
    for (path, file) in paths.iter().zip(files) {
        std::fs::write(path, file).unwrap();
    }
    let prove = |(variant, _): (String, _)| {
        let load = Request::Load(Load {
            task: task.name().to_owned(),
            variant: variant.clone(),
            files: paths.clone(),
        });
        let load = serde_json::to_string(&load).unwrap();
        let rest = "{\"cmd\":\"pass\"}\n{\"cmd\":\"prove\"}\n{\"cmd\":\"pass\"}\n";
        let answers = answers(&format!("{load}\n{rest}"));
        assert!(answers[1]["ns"].is_u64() && answers[3]["ns"].is_u64(), "{variant}");
        let units = answers[0]["units"].as_u64().unwrap();
        (variant, units, answers[2]["counts"].clone())
    };
    variants(task).into_iter().map(prove).collect()
}

#[test]
fn every_variant_of_decode_can_be_loaded_proved_and_timed() {
    let frame = Event::Info(Info { name: "OutdatedCursor", message: None }).to_frame();
    let file = corpus::write([frame.as_slice(), b"bad"]);
    for (variant, units, counts) in prove_all(Task::Decode, &file) {
        assert_eq!((units, &counts["frames"]), (2, &2.into()), "{variant}");
        assert_ne!(counts["errors"], 0, "{variant}");
    }
}

#[test]
fn every_variant_of_sigs_distinguishes_valid_invalid_and_malformed_signatures() {
    let made = signed_commits::Corpus::generate(&signed_commits::Spec {
        accounts: 40,
        ..signed_commits::Spec::mixed()
    });
    let file = made.to_file();
    let mut entries = signed_commits::read(&file).unwrap();
    let (first, key_of_another) = (entries[1].commit, entries[0].key);
    entries[0].commit = &first[1..];
    entries[2].key = key_of_another;
    entries[3].key = &[0; 33];
    let p256 = entries.iter().skip(4).filter(|entry| entry.curve == Curve::P256).count();
    let file = signed_commits::write(entries);
    for (variant, units, counts) in prove_all(Task::Sigs, &file) {
        let k256 = 320 - 4 - p256 + 1;
        let invalid = 1;
        let errors = 2;
        let expected = serde_json::json!({"commits": 320, "valid_k256": k256,
            "valid_p256": p256, "invalid": invalid, "errors": errors});
        assert_eq!((units, counts), (320, expected), "{variant}");
    }
}

#[test]
fn every_variant_of_schnorr_distinguishes_valid_invalid_and_malformed_events() {
    let made = schnorr_events::Corpus::generate(&schnorr_events::Spec {
        events: 300,
        ..schnorr_events::Spec::quick()
    });
    let [first, second] = [0, 1].map(|at| &made.events()[at]);
    let forged = schnorr_events::SignedEvent { sig: second.sig, ..first.clone() };
    let no_point = schnorr_events::SignedEvent { pubkey: [0xff; 32], ..first.clone() };
    let file = format!("{}{}\n{}\n{{}}\n", made.to_file(), forged.to_json(), no_point.to_json());
    let expected = serde_json::json!({"events": 303, "valid": 300, "invalid": 1, "errors": 2});
    for (variant, units, counts) in prove_all(Task::Schnorr, file.as_bytes()) {
        assert_eq!((units, &counts), (303, &expected), "{variant}");
    }
}

#[test]
fn every_variant_of_the_nostr_tasks_has_the_reference_counts() {
    let made = schnorr_events::Corpus::generate(&schnorr_events::Spec::quick());
    let file = format!("#first\n{}", made.to_file());
    let groups = nostr::groups(file.as_bytes()).unwrap();
    let arena = Bump::new();
    let events = nostr::events(&groups, &arena).unwrap();
    for task in Task::NOSTR {
        let of_format = |format: &Format| nostr::counts_by_variant(task, *format, &events);
        let others: BTreeMap<_, _> = Format::ALL.iter().flat_map(of_format).collect();
        let default = nostr::counts(task, &events);
        for (variant, units, counts) in prove_all(task, file.as_bytes()) {
            let expected = serde_json::to_value(others[&variant].as_ref().unwrap_or(&default));
            assert_eq!((units, &counts), (256, &expected.unwrap()), "{} {variant}", task.name());
        }
    }
}

#[test]
fn a_format_works_on_the_events_that_it_can_hold_and_proves_their_counts() {
    let corpus = nostr_events::Corpus::generate(&nostr_events::Spec {
        events: 3,
        authors: 1,
        ..nostr_events::Spec::quick()
    });
    let arena = Bump::new();
    let [first, second, third] = [0, 1, 2].map(|at| corpus.events()[at].borrow_in(&arena));
    let value = "x".repeat(40_000);
    let tags = [&[Value::Text("summary"), Value::Text(&value)][..]];
    let long = events::Event { tags: &tags, ..second };
    let file = nostr_sampling::json_lines(&[first, long, third]);
    for task in Task::NOSTR {
        for (variant, units, counts) in prove_all(task, file.as_bytes()) {
            // `wireproof` rejects it because its id belongs to another event.
            let is_held = !["capnp", "capnp-packed", "wireproof"]
                .contains(&variant.split('/').next().unwrap());
            assert_eq!(units, 2 + u64::from(is_held), "{} {variant}", task.name());
            assert_eq!(counts["events"], units, "{} {variant}", task.name());
        }
    }
    let unheld = nostr::held(Format::Capnp, &[first, long, third]).unheld;
    assert_eq!(unheld.named[0].id, kernels::hex::encode(&long.id));
}

#[test]
fn a_forged_event_is_invalid_alone_and_among_others() {
    let made = schnorr_events::Corpus::generate(&schnorr_events::Spec::quick());
    let [first, second] = [0, 1].map(|at| &made.events()[at]);
    let forged = schnorr_events::SignedEvent { sig: second.sig, ..first.clone() };
    let file = format!("{}{}\n", made.to_file(), forged.to_json());
    let expected = serde_json::json!({"events": 257, "valid": 256, "invalid": 1, "errors": 0});
    for (variant, _, counts) in prove_all(Task::NostrValidated, file.as_bytes()) {
        assert_eq!(counts, expected, "{variant}");
    }
}

#[test]
fn every_variant_of_mst_has_the_reference_counts() {
    let made = tree_records::Corpus::generate(&tree_records::Spec::quick());
    let expected = serde_json::to_value(made.counts()).unwrap();
    for (variant, units, counts) in prove_all(Task::Mst, &made.to_file()) {
        let work = match &*variant {
            "mixed" => (2_050, 5),
            variant if variant.starts_with("lookup") => (8_000, 3),
            _ => (2_000, 2),
        };
        let given = counts.as_object().unwrap();
        assert_eq!((units, given.len()), work, "{variant}");
        assert!(given.iter().all(|(name, count)| *count == expected[name]), "{variant}: {counts}");
    }
}

fn stream() -> firehose::Corpus {
    let spec = firehose::Spec { frames: 60, ..firehose::Spec::quick() };
    firehose::Corpus::generate(&spec, &mut |_, _| {})
}

#[test]
fn every_variant_of_commit_accepts_the_whole_stream_with_every_pass() {
    let made = stream();
    let accounts = serde_json::to_vec(&made.account_keys()).unwrap();
    let expected = serde_json::to_value(made.verdicts()).unwrap();
    for (variant, units, counts) in prove_all_of(Task::Commit, &[&made.to_file(), &accounts]) {
        assert_eq!((units, &counts), (60, &expected), "{variant}");
    }
}

#[test]
fn a_gap_and_an_unknown_account_are_counted_apart_from_commits_that_continue() {
    let made = stream();
    let accounts = serde_json::to_vec(&made.account_keys()).unwrap();
    let frames = made.to_file();
    let mut frames = corpus::read(&frames).unwrap();
    let did = |frame: &[u8]| match Decoder::new(Options::default()).decode(frame) {
        Ok(Event::Commit(commit)) => commit.repo.to_owned(),
        other => panic!("{other:?} is no commit"),
    };
    let first = did(frames[0]);
    let later: Vec<usize> = (1..frames.len()).filter(|at| did(frames[*at]) == first).collect();
    assert!(later.len() > 1, "the first account commits three times or more");
    frames.remove(later[0]);
    let file = corpus::write(frames);
    for (variant, _, counts) in prove_all_of(Task::Commit, &[&file, &accounts]) {
        let first_sightings = made.verdicts().first_sighting;
        assert_eq!(counts["first_sighting"], first_sightings, "{variant}: {counts}");
        assert_eq!(counts["chain_broken"], later.len() - 1, "{variant}: {counts}");
    }
}

#[test]
fn every_variant_of_commit_rejects_commits_by_other_keys() {
    let made = stream();
    let mut keys = made.account_keys();
    let stranger = keys.values().next_back().unwrap().clone();
    let first = keys.keys().next().unwrap().clone();
    keys.insert(first, stranger);
    let accounts = serde_json::to_vec(&keys).unwrap();
    for (variant, _, counts) in prove_all_of(Task::Commit, &[&made.to_file(), &accounts]) {
        let rejected = counts["refused"].as_u64().unwrap();
        let valid =
            ["accepted", "first_sighting", "chain_broken"].map(|name| counts[name].as_u64());
        let valid: u64 = valid.into_iter().flatten().sum();
        assert!(rejected > 0 && valid == 60 - rejected, "{variant}: {counts}");
    }
}

fn export() -> (repository_corpus::Corpus, Vec<u8>, Vec<u8>) {
    let spec = repository_corpus::Spec { records: 300, ..repository_corpus::Spec::quick() };
    let made = repository_corpus::Corpus::generate(&spec);
    let car = made.to_file();
    let manifest = made.manifest(&car);
    (made, car, serde_json::to_vec(&manifest).unwrap())
}

#[test]
fn every_variant_of_repo_has_the_reference_counts() {
    let (made, car, owner) = export();
    let expected = serde_json::to_value(made.counts()).unwrap();
    for (variant, units, counts) in prove_all_of(Task::Repo, &[&car, &owner]) {
        assert_eq!(units, 1, "{variant}");
        let given = counts.as_object().unwrap();
        assert_eq!(given.contains_key("rebuilt_root"), variant == "total/rebuild");
        assert!(given.iter().all(|(name, count)| *count == expected[name]), "{variant}: {counts}");
        assert_eq!(given.len(), if variant == "total" { 6 } else { 7 });
    }
}

#[test]
fn every_variant_of_repo_names_the_rule_that_a_changed_export_breaks() {
    let (_, mut car, owner) = export();
    *car.last_mut().unwrap() ^= 1;
    for (variant, _, counts) in prove_all_of(Task::Repo, &[&car, &owner]) {
        assert_eq!(counts["valid"], 0, "{variant}");
        assert!(counts["root"].as_str().unwrap().starts_with("car/hash"), "{counts}");
    }
}

#[test]
fn the_stages_of_a_pass_add_up_to_it() {
    let (_, car, owner) = export();
    let files = [car, owner];
    let mut work = repo::open("total/rebuild", &files).unwrap().unwrap();
    let start = Instant::now();
    let stages = work.pass().unwrap().stages_ns;
    let ns = start.elapsed().as_nanos() as u64;
    let names: Vec<&str> = stages.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["parse", "signature", "walk", "rebuild"]);
    assert!(stages.iter().map(|(_, ns)| ns).sum::<u64>() <= ns, "{stages:?} of {ns}");
}

#[test]
fn a_hostile_case_is_rejected_with_the_rule_that_it_breaks_and_a_valid_one_is_accepted() {
    let set = hostile_set::CaseSet::generate(&hostile_set::Spec::default());
    for name in ["tree/prefix-500", "event/an-event-again", "event/create-k256"] {
        let case = set.cases().iter().find(|case| case.name == name).unwrap();
        let given = serde_json::to_vec(&hostile_set::CaseContext::new(case)).unwrap();
        let variant = if case.kind == hostile_set::InputKind::Repo { "repo" } else { "frames" };
        let files = [case.bytes.clone(), given];
        let mut work = hostile::open(variant, &files).unwrap().unwrap();
        let Proof { counts, reason, .. } = work.prove().unwrap();
        assert_eq!(counts.get("refused"), Some(u64::from(case.code.is_some())), "{name}");
        let code = reason.as_deref().and_then(|reason| reason.split(':').next());
        assert_eq!(code, case.code, "{name}");
    }
}

#[test]
fn a_missing_file_and_an_unknown_task_are_answered_with_an_error() {
    let answers = answers(concat!(
        "{\"cmd\":\"pass\"}\n",
        "<html>\n",
        "{\"cmd\":\"load\",\"task\":\"decode\",\"variant\":\"verified/arena-reuse\",\"files\":[\"/nowhere\"]}\n",
        "{\"cmd\":\"load\",\"task\":\"paint\",\"variant\":\"red\",\"files\":[]}\n",
        "{\"cmd\":\"describe\"}\n",
    ));
    assert!(answers[..4].iter().all(|answer| answer["error"].is_string()), "{answers:?}");
    assert_eq!(answers[4]["language"], "rust");
}
