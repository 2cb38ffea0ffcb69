//! Every case of the hostile set is refused for the rule that it breaks, or accepted if it breaks none.
//! Records that the data model does not allow are flagged in otherwise valid input, and no valid real record
//! is flagged.

use std::sync::LazyLock;

use simnet::hostile::{Case, CaseSet, InputKind, Spec};
use simnet::{firehose, repository_corpus};
use wireproof::atproto::event::{Decoder, Event, Options, Values};
use wireproof::atproto::repo::Repository;
use wireproof::atproto::syntax::Datetime;
use wireproof::atproto::{corpus, repo};
use wireproof::crypto::{CompressedKey, KeyCache, PublicKey};
use wireproof::verify::sync::{Chain, Judge, MemoryState, Outcome, Policy};
use wireproof::verify::{Flagged, repository};
use wireproof_conformance::fixtures;

use crate::frames::{LIVE, split_live};

static SET: LazyLock<CaseSet> = LazyLock::new(|| CaseSet::generate(&Spec::default()));

#[test]
fn every_repository_is_judged_for_the_rule_that_it_is_about() {
    assert_codes(&SET, InputKind::Repo, repository_code);
}

#[test]
fn every_last_frame_is_judged_for_the_rule_that_it_is_about() {
    assert_codes(&SET, InputKind::Frames, |case| {
        let mut before = one_by_one(case);
        let last = before.pop().expect("the case");
        assert!(before.iter().all(Option::is_none), "{}: {before:?}", case.name);
        last
    });
}

#[test]
fn frames_are_judged_alike_in_a_batch() {
    assert_codes(&SET, InputKind::Frames, |case| {
        let codes = in_a_batch(case);
        assert_eq!(codes, one_by_one(case), "{}", case.name);
        *codes.last().expect("the case")
    });
}

#[test]
fn what_follows_from_other_seeds_is_judged_the_same() {
    for seed in 1..4 {
        let set = CaseSet::generate(&Spec { seed });
        assert_codes(&set, InputKind::Repo, repository_code);
        assert_codes(&set, InputKind::Frames, |case| *in_a_batch(case).last().expect("the case"));
    }
}

/// The rule that a repository breaks.
fn repository_code(case: &Case) -> Option<&'static str> {
    let key = PublicKey::from_did_key(&case.signing_key).expect("a key of the protocol");
    let options = repository::Options::default();
    let verdict = repository::verify(&case.bytes, Some(&case.did), &key, &options);
    verdict.err().map(|refusal| refusal.code())
}

/// The rules that the frames of a case break, each frame verified without the others.
fn one_by_one(case: &Case) -> Vec<Option<&'static str>> {
    let (mut judge, mut state) = new_judge();
    let key = |_: &str| CompressedKey::from_did_key(&case.signing_key).ok();
    let frames = corpus::read(&case.bytes).expect("a file of frames");
    let code = |frame| {
        let judged = judge.judge(frame, &key, &mut state, now_micros(case));
        code(&judged.expect("memory holds").outcome)
    };
    frames.into_iter().map(code).collect()
}

/// The same in one batch.
fn in_a_batch(case: &Case) -> Vec<Option<&'static str>> {
    let (mut judge, mut state) = new_judge();
    let key = |_: &str| CompressedKey::from_did_key(&case.signing_key).ok();
    let frames = corpus::read(&case.bytes).expect("a file of frames");
    let judged = judge.judge_batch(&frames, &key, &mut state, now_micros(case));
    judged.expect("memory holds").iter().map(|judged| code(&judged.outcome)).collect()
}

fn new_judge() -> (Judge, MemoryState) {
    let cache = KeyCache::new(1 << 16, [1; 16]);
    (Judge::new(Policy::default(), cache), MemoryState::new([2; 16]))
}

fn now_micros(case: &Case) -> u64 {
    let now = case.now.as_deref().expect("frames come with a time");
    let micros = Datetime::parse(now).expect("a datetime").unix_micros();
    micros.try_into().expect("after 1970")
}

/// The code of the rule that an event breaks, or of its chain break.
fn code(outcome: &Outcome<'_>) -> Option<&'static str> {
    match outcome {
        Outcome::Commit(_, Chain::Intact | Chain::FirstSeen) | Outcome::Sync(..) => None,
        Outcome::Commit(_, Chain::Broken(fault)) => Some(fault.code()),
        Outcome::Commit(..) => Some("not proved in full"),
        Outcome::Ignored(ignored) => Some(ignored.code()),
        Outcome::Rejected(rejection) => Some(rejection.code()),
        Outcome::Unjudged(_) => Some("not judged"),
    }
}

/// Asserts the code of every case, and reports all differences at once.
fn assert_codes(set: &CaseSet, kind: InputKind, judge: impl Fn(&Case) -> Option<&'static str>) {
    let cases = set.cases().iter().filter(|case| case.kind == kind);
    let wrong = |case: &Case| {
        let code = judge(case);
        (code != case.code).then(|| format!("{}: {code:?} instead of {:?}", case.name, case.code))
    };
    let wrong: Vec<String> = cases.filter_map(wrong).collect();
    assert!(wrong.is_empty(), "{} cases:\n{}", wrong.len(), wrong.join("\n"));
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
        let first = found.first.unwrap();
        assert_eq!((found.records, first.error.code(), &*first.error.item_path), (1, code, "/n"));
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
