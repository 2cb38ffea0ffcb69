//! Every case of the hostile set is refused for the rule that it breaks, or accepted if it breaks none; an invalid
//! record is reported by its rule, or refused with its repository or event on demand. Records that the data model does not allow are flagged in otherwise valid input, and no valid real record
//! is flagged.

use std::sync::LazyLock;

use atproto::event::{Decoder, Event, Options, Values};
use atproto::repo::Repository;
use atproto::syntax::{CollectionPatternBuf, Datetime};
use atproto::{corpus, repo};
use crypto::{CompressedKey, KeyCache, PublicKey};
use simnet::hostile::{Case, CaseSet, Expect, InputKind, Spec};
use simnet::{firehose, repository_corpus};
use verify::sync::{Chain, Judge, MemoryState, Outcome, Policy};
use verify::{Flagged, InvalidRecord, InvalidRecords, RecordFlag, collections, record, repository};
use wireproof_conformance::fixtures;

use crate::frames::{LIVE, split_live};

static SET: LazyLock<CaseSet> = LazyLock::new(|| CaseSet::generate(&Spec::default()));

/// A verifier's result for a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Accepted,
    /// Accepted with one invalid record, which breaks the rule with this code.
    InvalidRecord(&'static str),
    /// Refused, or not applied, by the rule with this code.
    Refused(&'static str),
}

impl Verdict {
    /// Of an accepted input.
    fn with(invalid: &InvalidRecords) -> Self {
        match &invalid.first {
            None => Self::Accepted,
            Some(InvalidRecord { error, .. }) if invalid.records == 1 => {
                Self::InvalidRecord(error.code())
            }
            Some(_) => Self::InvalidRecord("more than one"),
        }
    }

    /// The required one.
    fn of_case(case: &Case, strict_records: bool) -> Self {
        match (case.expect, case.code) {
            (Expect::Accept, _) => Self::Accepted,
            (Expect::InvalidRecord, Some(code)) if !strict_records => Self::InvalidRecord(code),
            (_, code) => Self::Refused(code.expect("a broken rule")),
        }
    }
}

#[test]
fn every_repository_is_judged_for_the_rule_that_it_is_about() {
    assert_verdicts(&SET, InputKind::Repo, repository_verdict);
}

#[test]
fn every_part_is_judged_for_the_rule_that_it_is_about() {
    assert_verdicts(&SET, InputKind::Part, part_verdict);
    let parts = SET.cases().iter().filter(|case| case.kind == InputKind::Part);
    assert!(parts.count() > 12);
}

#[test]
fn every_last_frame_is_judged_for_the_rule_that_it_is_about() {
    assert_verdicts(&SET, InputKind::Frames, |case, strict| {
        let mut before = one_by_one(case, strict);
        let last = before.pop().expect("the case");
        let is_accepted = |verdict: &Verdict| *verdict == Verdict::Accepted;
        assert!(before.iter().all(is_accepted), "{}: {before:?}", case.name);
        last
    });
}

#[test]
fn frames_are_judged_alike_in_a_batch() {
    assert_verdicts(&SET, InputKind::Frames, |case, strict| {
        let verdicts = in_a_batch(case, strict);
        assert_eq!(verdicts, one_by_one(case, strict), "{}", case.name);
        *verdicts.last().expect("the case")
    });
}

#[test]
fn what_follows_from_other_seeds_is_judged_the_same() {
    for seed in 1..4 {
        let set = CaseSet::generate(&Spec { seed });
        assert_verdicts(&set, InputKind::Repo, repository_verdict);
        assert_verdicts(&set, InputKind::Part, part_verdict);
        assert_verdicts(&set, InputKind::Frames, |case, strict| {
            *in_a_batch(case, strict).last().expect("the case")
        });
    }
}

#[test]
fn events_and_repositories_have_cases_of_invalid_records() {
    for kind in [InputKind::Repo, InputKind::Frames] {
        let cases = SET.cases().iter().filter(|case| case.kind == kind);
        let invalid = cases.filter(|case| case.expect == Expect::InvalidRecord).count();
        assert!(invalid > 4, "{kind:?}: {invalid}");
    }
}

fn repository_verdict(case: &Case, strict_records: bool) -> Verdict {
    let key = PublicKey::from_did_key(&case.signing_key).expect("a key of the protocol");
    let mut options = repository::Options::default();
    options.strict_records = strict_records;
    match repository::verify(&case.bytes, Some(&case.did), &key, &options) {
        Ok(whole) => Verdict::with(whole.invalid_records()),
        Err(refusal) => Verdict::Refused(refusal.code()),
    }
}

fn part_verdict(case: &Case, strict_records: bool) -> Verdict {
    let key = PublicKey::from_did_key(&case.signing_key).expect("a key of the protocol");
    let wanted: Vec<CollectionPatternBuf> =
        case.collections.iter().map(|name| name.parse().expect("a collection")).collect();
    let mut options = record::Options::default();
    options.strict_records = strict_records;
    match collections::verify(&case.bytes, &wanted, Some(&case.did), &key, &options) {
        Ok(proof) => Verdict::with(&proof.invalid_records()),
        Err(refusal) => Verdict::Refused(refusal.code()),
    }
}

/// The verdicts on the frames of a case, verified one at a time.
fn one_by_one(case: &Case, strict_records: bool) -> Vec<Verdict> {
    let (mut judge, mut state) = new_judge(strict_records);
    let key = |_: &str| CompressedKey::from_did_key(&case.signing_key).ok();
    let frames = corpus::read(&case.bytes).expect("a file of frames");
    let verdict = |frame| {
        let judged = judge.judge(frame, &key, &mut state, now_micros(case));
        verdict(&judged.expect("memory holds").outcome)
    };
    frames.into_iter().map(verdict).collect()
}

/// The same in one batch.
fn in_a_batch(case: &Case, strict_records: bool) -> Vec<Verdict> {
    let (mut judge, mut state) = new_judge(strict_records);
    let key = |_: &str| CompressedKey::from_did_key(&case.signing_key).ok();
    let frames = corpus::read(&case.bytes).expect("a file of frames");
    let judged = judge.judge_batch(&frames, &key, &mut state, now_micros(case));
    judged.expect("memory holds").iter().map(|judged| verdict(&judged.outcome)).collect()
}

fn new_judge(strict_records: bool) -> (Judge, MemoryState) {
    let cache = KeyCache::new(1 << 16, [1; 16]);
    let mut policy = Policy::default();
    policy.strict_records = strict_records;
    (Judge::new(policy, cache), MemoryState::new([2; 16]))
}

fn now_micros(case: &Case) -> u64 {
    let now = case.now.as_deref().expect("frames come with a time");
    let micros = Datetime::parse(now).expect("a datetime").unix_micros();
    micros.try_into().expect("after 1970")
}

/// The verdict that applies the event, or not.
fn verdict(outcome: &Outcome<'_>) -> Verdict {
    match outcome {
        Outcome::Commit(commit, Chain::Intact | Chain::FirstSeen) => {
            Verdict::with(&InvalidRecords::of_commit(commit))
        }
        Outcome::Sync(..) => Verdict::Accepted,
        Outcome::Commit(_, Chain::Broken(fault)) => Verdict::Refused(fault.code()),
        Outcome::Commit(..) => Verdict::Refused("not proved in full"),
        Outcome::Ignored(ignored) => Verdict::Refused(ignored.code()),
        Outcome::Rejected(rejection) => Verdict::Refused(rejection.code()),
        Outcome::Unjudged(_) => Verdict::Refused("not judged"),
    }
}

/// Asserts the verdict on every case, strict about records or not, and reports all differences at once.
fn assert_verdicts(set: &CaseSet, kind: InputKind, judge: impl Fn(&Case, bool) -> Verdict) {
    let mut wrong = Vec::new();
    for case in set.cases().iter().filter(|case| case.kind == kind) {
        for strict in [false, true] {
            let (verdict, expected) = (judge(case, strict), Verdict::of_case(case, strict));
            if verdict != expected {
                wrong
                    .push(format!("{}, strict {strict}: {verdict:?}, not {expected:?}", case.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{} verdicts:\n{}", wrong.len(), wrong.join("\n"));
}

/// Of all records that these frames bring; the same whether the decoder builds values or not.
fn of_frames(frames: &[&[u8]]) -> (u64, Flagged) {
    let [built, validated] = [Values::Build, Values::ValidateOnly].map(|values| {
        let mut options = Options::default();
        options.values = values;
        let mut decoder = Decoder::new(options);
        let (mut ops, mut all) = (0, Flagged::default());
        for frame in frames {
            let Ok(Event::Commit(ref commit)) = decoder.decode(frame) else { continue };
            let Flagged { records, first } = Flagged::of_commit(commit);
            ops += commit.ops.len() as u64;
            all.records += records;
            all.first = all.first.or(first);
        }
        (ops, all)
    });
    assert_eq!(built, validated);
    built
}

fn of_export(export: &[u8]) -> Flagged {
    Flagged::of_repository(&Repository::read(export, &repo::Options::default()).unwrap())
}

#[test]
fn a_frame_with_a_strange_record_is_valid_and_the_record_is_flagged() {
    let set = CaseSet::generate(&Spec::default());
    let flagged = |case: &Case| of_frames(&corpus::read(&case.bytes).unwrap()).1;
    for (name, code) in [
        ("record-with-a-float", "data/float"),
        ("record-with-an-integer-of-64-bits", "data/integer"),
        ("record-with-a-link-of-version-0", "data/link"),
    ] {
        let case = set.cases().iter().find(|case| case.name.ends_with(name)).unwrap();
        let found = flagged(case);
        let RecordFlag::DataModel(error) = found.first.unwrap().flag else { panic!("{name}") };
        assert_eq!((found.records, error.code(), &*error.item_path), (1, code, "/n"));
    }
    let usual = set.cases().iter().find(|case| case.name.ends_with("blocks-shuffled")).unwrap();
    assert_eq!(flagged(usual), Flagged::default());
    assert_eq!(usual.kind, InputKind::Frames);
}

#[test]
fn no_record_of_generated_accounts_is_flagged() {
    let stream = firehose::Corpus::generate(&firehose::Spec::quick(), &mut |_, _| {});
    let (ops, flagged) = of_frames(&corpus::read(&stream.to_file()).unwrap());
    assert_eq!(flagged, Flagged::default());
    assert!(ops > 100, "{ops}");
    let spec = repository_corpus::Spec::quick();
    let export = repository_corpus::Corpus::generate(&spec).to_file();
    assert_eq!(of_export(&export), Flagged::default());
}

#[test]
fn no_record_of_a_reference_server_is_flagged() {
    let data = fixtures!(Captures);
    let file = data.bytes("pds/frames.bin");
    assert_eq!(of_frames(&corpus::read(&file).unwrap()).1, Flagged::default());
    for path in data.files("pds", ".car") {
        assert_eq!(of_export(&data.bytes(&path)), Flagged::default(), "{path}");
    }
}

#[test]
fn no_record_of_the_live_network_is_flagged() {
    let data = fixtures!(Captures);
    assert_eq!(of_frames(&split_live(&data.bytes(LIVE))), (61, Flagged::default()));
    let mut repositories = 0;
    for path in data.files("atproto/cars", ".car") {
        let export = data.bytes(&path);
        let Ok(repository) = Repository::read(&export, &repo::Options::default()) else { continue };
        assert_eq!(Flagged::of_repository(&repository), Flagged::default(), "{path}");
        repositories += 1;
    }
    assert_eq!(repositories, 10);
}
