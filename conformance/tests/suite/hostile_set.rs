//! Is every case of the hostile set refused for the rule that it breaks, or accepted if it breaks
//! none?

use std::sync::LazyLock;

use simnet::hostile::{Case, CaseSet, InputKind, Spec};
use wireproof::atproto::corpus;
use wireproof::atproto::syntax::Datetime;
use wireproof::crypto::{CompressedKey, KeyCache, PublicKey};
use wireproof::verify::repository;
use wireproof::verify::sync::{Chain, Judge, MemoryState, Outcome, Policy};

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

/// The rules that the frames of a case break, each frame judged by itself.
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
