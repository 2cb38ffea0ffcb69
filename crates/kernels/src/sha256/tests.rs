//! Every back end against the portable one, and the portable one against NIST vectors and the crate `sha2`.

use proptest::prelude::*;
use sha2::Digest as _;

use super::lanes;
use super::*;
use crate::hex;

type DigestInto = Box<dyn Fn(&[&[u8]], &mut [Digest])>;

/// The back ends that this machine can run; the ARM one runs over emulated instructions elsewhere.
fn back_ends() -> Vec<(&'static str, DigestInto)> {
    let mut list: Vec<(&'static str, DigestInto)> = Backend::available()
        .map(|b| {
            (b.name(), Box::new(move |m: &[&[u8]], d: &mut [Digest]| b.digest_into(m, d)) as _)
        })
        .collect();
    list.push(("dispatched", Box::new(digest_many_into)));
    let arm = |m: &[&[u8]], d: &mut [Digest]| one_by_one(m, d, lanes::digest::<arm_sha2::Stream>);
    list.push(("arm-sha2, stream", Box::new(arm)));
    list
}

fn portable_digests(messages: &[&[u8]]) -> Vec<Digest> {
    messages.iter().map(|message| portable::digest(message)).collect()
}

fn assert_all_agree(messages: &[&[u8]]) {
    let expected = portable_digests(messages);
    for (name, digest_into) in back_ends() {
        let mut digests = vec![[0xee; 32]; messages.len()];
        digest_into(messages, &mut digests);
        assert_eq!(digests, expected, "{name} on {} messages", messages.len());
    }
}

fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let step = move || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x as u8
    };
    std::iter::repeat_with(step).take(len).collect()
}

#[test]
fn portable_gives_the_nist_example_digests() {
    let million = vec![b'a'; 1_000_000];
    let vectors: [(&[u8], &str); 4] = [
        (b"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (b"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        (
            b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
        ),
        (&million, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"),
    ];
    for (message, expected) in vectors {
        assert_eq!(hex::encode(&portable::digest(message)), expected);
        assert_all_agree(&[message]);
    }
}

#[test]
fn every_back_end_agrees_at_every_length_alone() {
    for len in 0..=300 {
        let message = noise(len, len as u64);
        let expected: Digest = sha2::Sha256::digest(&message).into();
        assert_eq!(portable::digest(&message), expected, "length {len}");
        assert_all_agree(&[&message]);
    }
}

#[test]
fn every_back_end_agrees_on_all_lengths_at_once() {
    let messages: Vec<Vec<u8>> = (0..=300).map(|len| noise(len, 7)).collect();
    let views: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
    assert_all_agree(&views);
    let reversed: Vec<&[u8]> = views.iter().rev().copied().collect();
    assert_all_agree(&reversed);
}

#[test]
fn every_back_end_agrees_on_every_batch_size_around_the_lane_counts() {
    let message = noise(200, 3);
    for count in 0..=40 {
        let views: Vec<&[u8]> = (0..count).map(|i| &message[..(i * 37) % 200]).collect();
        assert_all_agree(&views);
    }
}

#[test]
fn every_back_end_agrees_on_many_messages_of_one_block_and_where_they_end() {
    let message = noise(200, 8);
    for (longer, at) in [(55, 0), (56, 0), (56, 31), (64, 32), (120, 63), (56, 64), (200, 99)] {
        let mut views: Vec<&[u8]> = (0..100).map(|i| &message[i..][..(i * 7) % 56]).collect();
        views[at] = &message[..longer];
        assert_all_agree(&views);
    }
}

#[test]
fn a_long_message_in_any_lane_among_short_ones_changes_nothing() {
    let (long, short) = (noise(70_000, 1), noise(100, 2));
    for at in 0..20 {
        let mut views: Vec<&[u8]> = vec![&short; 20];
        views[at] = &long;
        assert_all_agree(&views);
    }
}

#[test]
fn digest_of_one_is_digest_of_many() {
    let message = noise(1_000, 4);
    assert_eq!(digest(&message), digest_many(&[message.as_slice(); 40])[39]);
}

#[test]
fn a_message_cut_in_three_at_any_two_places_has_the_same_digest() {
    let message = noise(200, 5);
    let expected = portable::digest(&message);
    for second in 0..=message.len() {
        let (head, tail) = message.split_at(second);
        for first in 0..=second {
            let (start, middle) = head.split_at(first);
            let digest = digest_parts(&[start, middle, tail]);
            assert_eq!(digest, expected, "cut at {first} and {second}");
        }
    }
}

#[test]
fn a_message_in_parts_may_have_any_length() {
    assert_eq!(digest_parts(&[]), portable::digest(b""));
    for len in [510, 511, 512, 513, 514, 5_000] {
        let message = noise(len, 6);
        assert_eq!(digest_parts(&[&message]), portable::digest(&message), "length {len}");
        let bytes: Vec<&[u8]> = message.chunks(1).collect();
        assert_eq!(digest_parts(&bytes), portable::digest(&message), "length {len}");
    }
}

#[test]
#[should_panic(expected = "one digest for each message")]
fn too_few_places_are_a_caller_bug() {
    digest_many_into(&[b"a", b"b"], &mut [[0; 32]]);
}

proptest! {
    #[test]
    fn every_back_end_agrees_on_uneven_batches(
        lens in proptest::collection::vec(
            prop_oneof![4 => 0usize..600, 1 => 55usize..=66, 1 => 119usize..=130, 1 => 0usize..20_000],
            0..70,
        ),
        seed: u64,
    ) {
        let messages: Vec<Vec<u8>> =
            lens.iter().zip(seed..).map(|(len, seed)| noise(*len, seed)).collect();
        let views: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
        assert_all_agree(&views);
    }
}
