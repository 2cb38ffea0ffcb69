//! The tasks with a small codec that rejects some events and panics on others.

use protocol::{Counts, Parts, VerdictCounts, Work};

use super::*;

/// An event is a kind, and has two bytes. Kind 8 is rejected, and 9 makes it panic.
struct Toy;

impl Codec for Toy {
    const FORMAT: &'static str = "toy";
    const CHECKS: &'static [&'static str] = &[];

    type Event = u16;
    type Decoded<'a> = Box<u16>;

    fn parse(line: &str) -> Result<u16, BoxError> {
        Ok(line.parse()?)
    }

    fn encode(kind: &u16, out: &mut Vec<u8>) -> Result<(), BoxError> {
        out.extend_from_slice(&kind.to_be_bytes());
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<Box<u16>, BoxError> {
        match u16::from_be_bytes(bytes.try_into()?) {
            8 => Err("eight".into()),
            9 => panic!("nine"),
            kind => Ok(Box::new(kind)),
        }
    }

    fn count(kind: &Box<u16>, counts: &mut EventCounts) {
        counts.event(**kind, -1, "\u{e9}");
        counts.texts(["a"]);
        counts.hex(&[1, 2]);
    }

    fn encode_batch(kinds: &[u16], out: &mut Vec<u8>) -> Result<(), BoxError> {
        framed::encode(kinds, out, Toy::encode)
    }

    fn decode_batch(bytes: &[u8]) -> Result<Vec<Box<u16>>, BoxError> {
        framed::decode(bytes, Toy::decode)
    }
}

/// An even kind is valid.
impl Validate for Toy {
    const CHECKS: &'static [&'static str] = &[];

    fn validate(bytes: &[u8]) -> Result<bool, BoxError> {
        Ok(*Toy::decode(bytes)? % 2 == 0)
    }
}

/// The author's first bytes are zeroes and the kind.
impl Fields for Toy {
    fn kind(bytes: &[u8]) -> Result<u16, BoxError> {
        Ok(*Toy::decode(bytes)?)
    }

    fn pubkey(bytes: &[u8]) -> Result<[u8; 32], BoxError> {
        let mut pubkey = [0; 32];
        pubkey[2..4].copy_from_slice(&Toy::kind(bytes)?.to_be_bytes());
        Ok(pubkey)
    }

    fn both(bytes: &[u8]) -> Result<(u16, [u8; 32]), BoxError> {
        Ok((Toy::kind(bytes)?, Toy::pubkey(bytes)?))
    }
}

/// The task, loaded with a file of these lines.
fn loaded(task: &str, variant: &str, lines: &str) -> Box<dyn Work> {
    let mut tasks = tasks::<Toy>();
    tasks.extend([validated::<Toy>(), fields::<Toy>()]);
    let task = tasks.into_iter().find(|known| known.name == task).unwrap();
    assert!(task.variants.iter().any(|known| known.name == variant), "{variant}");
    let path = crate::files::scratch("events");
    std::fs::write(&path, lines).unwrap();
    let work = (task.load)(variant, &[path.to_str().unwrap()]).unwrap();
    std::fs::remove_file(&path).unwrap();
    work
}

fn counts(task: &str, variant: &str, lines: &str) -> Counts {
    loaded(task, variant, lines).prove().unwrap().counts
}

fn stages(parts: &Parts) -> Vec<&str> {
    parts.stages_ns.iter().map(|(name, _)| name.as_ref()).collect()
}

fn expected(read: u64, errors: u64, kinds: u64) -> Counts {
    let (events, tags, values) = (read + errors, read, 2 * read);
    let (value_bytes, content_bytes, seconds) = (5 * read, 2 * read, read.wrapping_neg());
    let counts =
        EventCounts { events, errors, tags, values, value_bytes, content_bytes, kinds, seconds };
    counts.into()
}

#[test]
fn rejections_panics_and_unparsable_lines_are_errors_and_count_in_nothing_else() {
    let lines = "1\n8\n2\n9\nx\n4\n";
    assert_eq!(counts("nostr-deserialize", "toy", lines), expected(3, 3, 7));
    let written = Counts::from_iter([("events", 6), ("errors", 1), ("bytes", 10)]);
    assert_eq!(counts("nostr-serialize", "toy", lines), written);
    let verified = VerdictCounts { events: 6, valid: 2, invalid: 1, errors: 3 }.into();
    assert_eq!(counts("nostr-validated", "toy", lines), verified);
}

#[test]
fn a_pass_continues_after_a_panic() {
    let mut seen = Vec::new();
    crate::catch_panics(&[1, 9, 2, 9], |&unit| {
        seen.push(unit);
        assert_ne!(unit, 9);
    });
    assert_eq!(seen, [1, 9, 2, 9]);
}

#[test]
fn each_chunk_of_twenty_events_has_a_time_and_so_has_the_rest() {
    let lines = "1\n".repeat(45);
    for task in ["nostr-serialize", "nostr-deserialize", "nostr-validated"] {
        let parts = loaded(task, "toy", &lines).pass().unwrap();
        assert_eq!((parts.chunks_ns.len(), parts.stages_ns.len()), (3, 0), "{task}");
    }
}

#[test]
fn groups_are_the_stages_of_a_pass_and_are_counted_together() {
    let lines = "#kind-1\n1\n1\n#kind-7\n7\n";
    assert_eq!(counts("nostr-by-kind", "toy", lines), expected(3, 0, 9));
    let parts = loaded("nostr-by-category", "toy", lines).pass().unwrap();
    assert_eq!((stages(&parts), parts.chunks_ns.len()), (vec!["kind-1", "kind-7"], 0));
}

#[test]
fn batches_are_counted_once_and_timed_by_length() {
    let lines = "3\n".repeat(1_001);
    assert_eq!(counts("nostr-batch", "toy", &lines), expected(1_001, 0, 3_003));
    let mut work = loaded("nostr-batch", "toy", &lines);
    assert_eq!(work.loaded().units, 1_001);
    assert_eq!(stages(&work.pass().unwrap()), ["1", "10", "100", "1000"]);
    let with_errors = format!("{lines}x\n8\n");
    assert_eq!(counts("nostr-batch", "toy", &with_errors), expected(1_000, 3, 3_000));
}

#[test]
fn fields_are_summed_as_the_variant_says() {
    let lines = "1\n1\n65535\n8\n";
    let sums = |field: &str| counts("nostr-fields", &format!("toy/{field}"), lines);
    assert_eq!(sums("kind"), Counts::from_iter([("events", 4), ("kinds", 65_537)]));
    assert_eq!(sums("pubkey"), Counts::from_iter([("events", 4), ("pubkeys", 65_537)]));
    assert_eq!(
        sums("both"),
        Counts::from_iter([("events", 4), ("kinds", 65_537), ("pubkeys", 65_537)])
    );
    assert_eq!(sums("filter"), Counts::from_iter([("events", 4), ("matched", 2)]));
}

#[test]
fn allocations_are_those_of_the_work() {
    let proof = loaded("nostr-deserialize", "toy", &"1\n".repeat(1_000)).prove().unwrap();
    // Other tests of this process allocate at the same time.
    assert!(proof.allocations.unwrap() >= 1_000);
}
