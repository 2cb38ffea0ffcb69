//! A batch gives each frame the verdict that it gets when all are judged one after the other.

use proptest::prelude::*;
use simnet::keys::{Curve, SigningKey};
use wireproof::atproto::event::Commit;

use super::stage::*;

/// Judges the frames in batches of these lengths, and one by one in another court; all must agree,
/// and so must what is stored.
#[track_caller]
fn assert_alike(courts: [Court; 2], frames: &[Vec<u8>], lens: &[usize], dids: &[&str]) {
    let [mut together, mut alone] = courts;
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
    let mut court = Court::of([author.account()]);
    let frames: Vec<Vec<u8>> = (0..40).map(|_| author.create()).collect();
    let batch: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    let words: Vec<String> = court.judge_batch(&batch).iter().map(|j| word(&j.outcome)).collect();
    assert_eq!(words[0], "first");
    assert!(words[1..].iter().all(|word| word == "holds"), "{words:?}");
    let again: Vec<String> = court.judge_batch(&batch).iter().map(|j| word(&j.outcome)).collect();
    assert!(again.iter().all(|word| word == "ignored 6 event/stale-rev"), "{again:?}");
}

#[test]
fn a_refused_frame_in_the_middle_does_not_advance_its_account() {
    let mut author = Author::on_k256(1);
    let mut court = Court::of([author.account()]);
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
    let words: Vec<String> = court.judge_batch(&batch).iter().map(|j| word(&j.outcome)).collect();
    assert_eq!(words[0], "first");
    for words in words[1..].chunks(3) {
        let expected = ["refused 11 signature/wrong", "holds", "ignored 6 event/stale-rev"];
        assert_eq!(words, expected);
    }
}

#[test]
fn accounts_whose_names_end_alike_are_told_apart() {
    let mut authors: Vec<Author> = (1..=3).map(|number| Author::new(number, 10)).collect();
    let [mut court, _] = courts(&authors);
    let sound: Vec<Vec<u8>> = authors.iter_mut().map(Author::create).collect();
    let ending = authors[1].did()[24..].to_owned();
    let alike = |commit: Commit<'_>| {
        let repo = format!("{}{ending}", &commit.repo[..24]);
        frame(Commit { repo: &repo, ..commit })
    };
    let frames: Vec<Vec<u8>> =
        sound.iter().flat_map(|sound| [rewritten(sound, alike), sound.clone()]).collect();
    let batch: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    let words: Vec<String> = court.judge_batch(&batch).iter().map(|j| word(&j.outcome)).collect();
    let other = "refused 10 event/did-mismatch";
    assert_eq!(words, [other, "first", "first", "ignored 6 event/stale-rev", other, "first"]);
}

#[test]
fn an_empty_batch_has_no_verdicts() {
    assert!(Court::of([]).judge_batch(&[]).is_empty());
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

fn courts(authors: &[Author]) -> [Court; 2] {
    [(); 2].map(|()| Court::of(authors.iter().map(Author::account)))
}

#[test]
fn forgeries_among_sound_frames_get_the_same_verdict_in_any_batch() {
    let (authors, frames) = mixed();
    let dids: Vec<&str> = authors.iter().map(Author::did).collect();
    for len in [1, 2, 3, 5, 17, 64, 200] {
        assert_alike(courts(&authors), &frames, &[len], &dids);
    }
}

/// What to do to a frame of the mixed ones.
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
        assert_alike(courts(&authors), &mutated, &lens, &dids);
    }
}
