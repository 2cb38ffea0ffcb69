//! Frames get the same verdict alone and in a batch, and nothing unsigned is accepted.

use atproto::commit::{Commit as CommitObject, UnsignedCommit};
use atproto::event::{Block, Commit, Decoder, Event, Options};
use codec::car::Writer;
use codec::cid::{Cid, Codec};
use crypto::{CompressedKey, Curve, KeyCache, SecretKey};
use verify::sync::{Judge, Judged, MemoryState, Outcome, Policy};

/// Runs the target on one input.
pub(crate) fn run(input: &[u8]) {
    let raw: Vec<&[u8]> = split(input);
    let signed: Vec<Vec<u8>> = raw.iter().filter_map(|frame| signed_again(frame)).collect();
    let frames: Vec<&[u8]> = raw.iter().copied().chain(signed.iter().map(Vec::as_slice)).collect();
    for policy in [Policy::default(), lenient()] {
        let mut together = JudgeFixture::new(policy);
        let mut alone = JudgeFixture::new(policy);
        for (at, judged) in together.judge_batch(&frames).into_iter().enumerate() {
            assert_eq!(alone.judge(frames[at]), judged);
            assert!(
                at >= raw.len() || !judged.outcome.is_accepted(),
                "an unsigned frame is accepted"
            );
            if let Outcome::Rejected(rejection) = judged.outcome {
                assert!(!rejection.to_string().is_empty());
                assert!(rejection.code().contains('/') && (1..=20).contains(&rejection.row()));
            }
        }
        assert_eq!(together.state.len(), alone.state.len());
    }
}

/// The `#commit` in a frame with its blocks under their true CIDs, and a commit object that is
/// signed: so that the checks after the signature are reached.
fn signed_again(frame: &[u8]) -> Option<Vec<u8>> {
    let mut options = Options::default();
    options.trust_hashes = true;
    let mut decoder = Decoder::new(options);
    let Ok(Event::Commit(commit)) = decoder.decode(frame) else { return None };
    let named = |block: &&Block<'_>| block.cid == commit.commit.as_cid_ref();
    let object = CommitObject::parse(commit.blocks.iter().find(named)?.data).ok()?;
    let (did, rev) = (commit.repo, commit.rev);
    let unsigned = UnsignedCommit { did, rev, data: object.data, prev: object.prev };
    let object = unsigned.with_signature(&secret().sign(&unsigned.to_bytes()));
    let root = Cid::of(Codec::DagCbor, &object);
    let mut car = Writer::new(Vec::new(), &[root]).ok()?;
    car.block(&root, &object).ok()?;
    for block in commit.blocks {
        car.block(&Cid::of(Codec::DagCbor, block.data), block.data).ok()?;
    }
    let car = car.into_inner();
    Some(Event::Commit(Commit { commit: root, car: &car, ..commit }).to_frame())
}

/// The frames of the input: a length of two bytes before every frame but the last.
fn split(input: &[u8]) -> Vec<&[u8]> {
    let mut frames = vec![input];
    let mut rest = input;
    while let Some((len, behind)) = rest.split_first_chunk() {
        let Some((frame, behind)) = behind.split_at_checked(u16::from_le_bytes(*len).into()) else {
            break;
        };
        frames.push(frame);
        rest = behind;
    }
    frames
}

/// Takes all that a policy can take.
fn lenient() -> Policy {
    let mut policy = Policy::default();
    policy.accept_missing_prev_data = true;
    policy.accept_ops_without_prev = true;
    policy.accept_failed_inversion = true;
    policy.accept_since_mismatch = true;
    policy.accept_too_big = true;
    policy.accept_rebase = true;
    policy.accept_any_time = true;
    policy
}

/// A judge with one key for all accounts.
struct JudgeFixture {
    judge: Judge,
    state: MemoryState,
}

impl JudgeFixture {
    fn new(policy: Policy) -> Self {
        let judge = Judge::new(policy, KeyCache::new(1 << 16, [7; 16]));
        Self { judge, state: MemoryState::new([8; 16]) }
    }

    fn judge<'j>(&'j mut self, frame: &'j [u8]) -> Judged<'j> {
        let Ok(judged) = self.judge.judge(frame, &key, &mut self.state, NOW_MICROS);
        judged
    }

    fn judge_batch<'j>(&'j mut self, frames: &[&'j [u8]]) -> Vec<Judged<'j>> {
        let Ok(judged) = self.judge.judge_batch(frames, &key, &mut self.state, NOW_MICROS);
        judged
    }
}

fn key(_did: &str) -> Option<CompressedKey> {
    Some(*secret().public_key().as_compressed())
}

fn secret() -> SecretKey {
    SecretKey::from_bytes(Curve::K256, &[7; 32]).expect("a number below the order")
}

/// 2030.
const NOW_MICROS: u64 = 1_893_456_000_000_000;
