//! A batch yields the same verdicts as the frames verified one after the other.

use atproto::event::Commit;
use proptest::prelude::*;
use simnet::keys::{Curve, SigningKey};

use super::fixture::*;

/// Verifies the frames in batches of these lengths, and one by one with another verifier: all verdicts and
/// stored states must agree.
#[track_caller]
fn assert_equal_verdicts(
    judges: [TestJudge; 2],
    frames: &[Vec<u8>],
    lens: &[usize],
    dids: &[&str],
) {
    let [mut together, mut alone] = judges;
    let mut rest: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    for len in lens.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let behind = rest.split_off((*len).min(rest.len()));
        for (frame, judged) in rest.iter().zip(together.judge_batch(&rest)) {
            assert_eq!(judged, alone.judge(frame));
        }
        rest = behind;
    }
    for did in dids {
        assert_eq!(together.account(did), alone.account(did), "{did}");
    }
}

#[test]
fn frames_of_one_account_are_judged_in_their_order() {
    let mut author = Author::on_k256(1);
    let mut judge = TestJudge::of([author.account()]);
    let frames: Vec<Vec<u8>> = (0..40).map(|_| author.create()).collect();
    let batch: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    let verdicts: Vec<String> =
        judge.judge_batch(&batch).iter().map(|j| verdict(&j.outcome)).collect();
    assert_eq!(verdicts[0], "first");
    assert!(verdicts[1..].iter().all(|verdict| verdict == "intact"), "{verdicts:?}");
    let again: Vec<String> =
        judge.judge_batch(&batch).iter().map(|j| verdict(&j.outcome)).collect();
    assert!(again.iter().all(|verdict| verdict == "ignored 6 event/stale-rev"), "{again:?}");
}

#[test]
fn a_rejected_frame_in_the_middle_does_not_advance_its_account() {
    let mut author = Author::on_k256(1);
    let mut judge = TestJudge::of([author.account()]);
    let stranger = SigningKey::from_bytes(Curve::K256, &[9; 32]).unwrap();
    let mut frames = vec![author.create()];
    for _ in 0..5 {
        let sound = author.create();
        frames.push(rewritten(&sound, |commit| {
            with_object(commit, &sign(&stranger, unsigned(&object(&commit))))
        }));
        frames.push(sound.clone());
        frames.push(sound);
    }
    let batch: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    let verdicts: Vec<String> =
        judge.judge_batch(&batch).iter().map(|j| verdict(&j.outcome)).collect();
    assert_eq!(verdicts[0], "first");
    for verdicts in verdicts[1..].chunks(3) {
        let expected = ["rejected 11 signature/wrong", "intact", "ignored 6 event/stale-rev"];
        assert_eq!(verdicts, expected);
    }
}

#[test]
fn accounts_whose_dids_end_alike_are_distinguished() {
    let mut authors: Vec<Author> = (1..=3).map(|number| Author::new(number, 10)).collect();
    let [mut judge, _] = judges(&authors);
    let sound: Vec<Vec<u8>> = authors.iter_mut().map(Author::create).collect();
    let ending = authors[1].did()[24..].to_owned();
    let alike = |commit: Commit<'_>| {
        let repo = format!("{}{ending}", &commit.repo[..24]);
        frame(Commit { repo: &repo, ..commit })
    };
    let frames: Vec<Vec<u8>> =
        sound.iter().flat_map(|sound| [rewritten(sound, alike), sound.clone()]).collect();
    let batch: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    let verdicts: Vec<String> =
        judge.judge_batch(&batch).iter().map(|j| verdict(&j.outcome)).collect();
    let other = "rejected 10 event/did-mismatch";
    assert_eq!(verdicts, [other, "first", "first", "ignored 6 event/stale-rev", other, "first"]);
}

#[test]
fn an_empty_batch_has_no_verdicts() {
    assert!(TestJudge::of([]).judge_batch(&[]).is_empty());
}

/// Frames of three accounts, in turns, with some of every kind of forgery among them.
fn mixed() -> (Vec<Author>, Vec<Vec<u8>>) {
    let mut authors: Vec<Author> = (1..=3).map(|number| Author::new(number, 40)).collect();
    let mut frames = Vec::new();
    for step in 0..8 {
        for author in &mut authors {
            let sound = if step % 3 == 1 { author.delete(step) } else { author.create() };
            frames.push(rewritten(&sound, |c| frame(Commit { too_big: Some(true), ..c })));
            frames.push(rewritten(&sound, |c| with_ops(c, Vec::clear)));
            frames.push(rewritten(&sound, |c| with_blocks(c, blocks(&c).skip(1))));
            frames.push(rewritten(&sound, |c| frame(Commit { since: Some("2222222222222"), ..c })));
            frames.push(sound);
            frames.push(author.sync());
        }
    }
    (authors, frames)
}

fn judges(authors: &[Author]) -> [TestJudge; 2] {
    [(); 2].map(|()| TestJudge::of(authors.iter().map(Author::account)))
}

#[test]
fn forgeries_among_sound_frames_get_the_same_verdict_in_any_batch() {
    let (authors, frames) = mixed();
    let dids: Vec<&str> = authors.iter().map(Author::did).collect();
    for len in [1, 2, 3, 5, 17, 64, 200] {
        assert_equal_verdicts(judges(&authors), &frames, &[len], &dids);
    }
}

/// The change to a frame of the mixed ones.
#[derive(Clone, Debug)]
enum Mutation {
    Keep,
    Flip(prop::sample::Index, u8),
    Cut(prop::sample::Index),
    Remove(prop::sample::Index, usize),
    Repeat(prop::sample::Index, usize),
}

impl Mutation {
    fn apply(&self, frame: &[u8]) -> Vec<u8> {
        let (mut frame, len) = (frame.to_vec(), frame.len());
        match self {
            Self::Keep => {}
            Self::Flip(at, mask) => frame[at.index(len)] ^= mask,
            Self::Cut(at) => frame.truncate(at.index(len)),
            Self::Remove(at, count) => {
                let at = at.index(len);
                frame.drain(at..(at + count).min(len));
            }
            Self::Repeat(at, count) => {
                let at = at.index(len);
                let part = frame[at..(at + count).min(len)].to_vec();
                frame.splice(at..at, part);
            }
        }
        frame
    }
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let at = any::<prop::sample::Index>;
    prop_oneof![
        4 => Just(Mutation::Keep),
        4 => (at(), 1u8..).prop_map(|(at, mask)| Mutation::Flip(at, mask)),
        1 => at().prop_map(Mutation::Cut),
        1 => (at(), 1usize..64).prop_map(|(at, len)| Mutation::Remove(at, len)),
        1 => (at(), 1usize..64).prop_map(|(at, len)| Mutation::Repeat(at, len)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_done_to_frames_a_batch_and_one_by_one_agree(
        chosen in prop::collection::vec((any::<prop::sample::Index>(), mutation()), 1..60),
        lens in prop::collection::vec(1usize..30, 1..6),
        in_order in any::<bool>(),
    ) {
        let (authors, frames) = mixed();
        let mut chosen: Vec<_> =
            chosen.iter().map(|(at, mutation)| (at.index(frames.len()), mutation)).collect();
        if in_order {
            chosen.sort_by_key(|(at, _)| *at);
        }
        let mutated: Vec<Vec<u8>> =
            chosen.iter().map(|(at, mutation)| mutation.apply(&frames[*at])).collect();
        let dids: Vec<&str> = authors.iter().map(Author::did).collect();
        assert_equal_verdicts(judges(&authors), &mutated, &lens, &dids);
    }
}
