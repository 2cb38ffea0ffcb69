//! The rate at which labels are judged on one core, in batches and one at a time:
//! `cargo run --release -p wireproof-verify --example label_throughput [LABELS [FILE]]`
//!
//! FILE gets the labels as lines of a key and a label in hexadecimal, as the verifier of `interop/relay` reads them.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::Instant;

use atproto::label::UnsignedLabel;
use crypto::{Curve, SecretKey};
use wireproof_verify::labels::{LabelJudge, ReceivedLabel, SourceKeys};

fn main() -> std::io::Result<()> {
    let mut args = std::env::args().skip(1);
    let count: usize = args.next().and_then(|count| count.parse().ok()).unwrap_or(100_000);
    let sources: Vec<Source> = (1..=SOURCES).map(Source::new).collect();
    let labels: Vec<(&Source, Vec<u8>)> =
        (0..count).map(|number| sources[number % sources.len()].label(number)).collect();
    if let Some(file) = args.next() {
        let lines = labels.iter().map(|(source, label)| {
            label.iter().fold(source.key.public_key().to_did_key() + " ", |mut line, byte| {
                let _ = write!(line, "{byte:02x}");
                line
            }) + "\n"
        });
        std::fs::write(file, lines.collect::<String>())?;
    }
    let keys: HashMap<Box<str>, SourceKeys> = sources
        .iter()
        .map(|source| {
            (source.did.as_str().into(), SourceKeys::of(*source.key.public_key().as_compressed()))
        })
        .collect();
    let received: Vec<ReceivedLabel<'_>> = labels
        .iter()
        .map(|(source, bytes)| ReceivedLabel { bytes, service: Some(&source.did) })
        .collect();
    for batch in [1, 64, 512, 4096] {
        let mut rates: Vec<f64> = (0..PASSES).map(|_| rate(&received, batch, &keys)).collect();
        rates.sort_by(f64::total_cmp);
        println!(
            "batches of {batch}: {:.0} labels/s ({:.0} to {:.0})",
            rates[PASSES / 2],
            rates[0],
            rates[PASSES - 1]
        );
    }
    Ok(())
}

/// Labels a second, with a new judge.
fn rate(received: &[ReceivedLabel<'_>], batch: usize, keys: &HashMap<Box<str>, SourceKeys>) -> f64 {
    let mut judge = LabelJudge::new([1; 16], false);
    let start = Instant::now();
    let verified: usize = received
        .chunks(batch)
        .map(|labels| {
            judge.judge(labels, keys, NOW).iter().filter(|outcome| outcome.is_ok()).count()
        })
        .sum();
    assert_eq!(verified, received.len());
    received.len() as f64 / start.elapsed().as_secs_f64()
}

/// A labeler and its key.
struct Source {
    did: String,
    key: SecretKey,
}

impl Source {
    fn new(number: u8) -> Self {
        let key = SecretKey::from_bytes(Curve::K256, &[number; 32]).expect("a small number");
        Self { did: format!("did:web:labels{number}.example.com"), key }
    }

    fn label(&self, number: usize) -> (&Self, Vec<u8>) {
        let uri = format!("at://did:plc:ewvi7nxzyoun6zhxrhs64oiz/app.bsky.feed.post/{number:013}");
        let unsigned = UnsignedLabel {
            src: &self.did,
            uri: &uri,
            cid: Some("bafyreie5cvv4h45feadgeuwhbcutmh6t2ceseocckahdoe6uat64zmz454"),
            val: "spam",
            neg: number.is_multiple_of(10).then_some(true),
            cts: "2026-01-01T00:00:00.000Z",
            exp: None,
        };
        (self, unsigned.with_signature(&self.key.sign(&unsigned.to_bytes())))
    }
}

/// Labelers, of which a network has some hundred and a follower some.
const SOURCES: u8 = 8;

const PASSES: usize = 5;

/// 2026-06-01T00:00:00Z.
const NOW: i64 = 1_780_272_000_000_000;
