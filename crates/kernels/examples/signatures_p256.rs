//! Benchmark of P-256 verification in lanes against AWS-LC, which verifies one at a time.
//!
//! ```text
//! cargo run --release -p wireproof-kernels --example signatures_p256
//! ```
//!
//! The rows run interleaved, so that other load on the machine affects all of them; medians and bests of
//! the rounds, in CPU time where the system tells it.

use std::hint::black_box;
use std::time::Instant;

use aws_lc_rs::digest::{Digest, SHA256};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, ParsedPublicKey};
use p256::ecdsa::signature::hazmat::PrehashSigner;
use p256::ecdsa::{Signature, SigningKey};
use wireproof_kernels::p256::{Backend, EcdsaItem, Key, KeyTable, TableSize, Verdict};
use wireproof_kernels::sha256;

fn main() {
    let signed: Vec<Signed> = (0..COUNT).map(Signed::new).collect();
    let keys: Vec<Key<'_>> = signed.iter().map(|s| Key::Compressed(&s.key)).collect();
    let points: Vec<Key<'_>> = signed.iter().map(|s| Key::Point { x: s.x(), y: &s.y }).collect();
    let tables = TableSize::ALL.map(|size| tables(&signed, size));
    let cached = tables.each_ref().map(|tables| tables.iter().map(Key::Cached).collect());

    let mut rows: Vec<(String, Box<dyn FnMut() + '_>)> = vec![
        ("AWS-LC, key parsed before".into(), Box::new(|| verify_parsed(&signed))),
        ("AWS-LC, key from bytes".into(), Box::new(|| verify_bytes(&signed))),
        ("key tables, lanes".into(), Box::new(|| drop(black_box(KeyTable::new_many(&keys))))),
    ];
    let lanes = Backend::ALL.into_iter().filter(|b| *b != Backend::Portable && b.is_available());
    let [small, medium, large]: &[Vec<Key<'_>>; 3] = &cached;
    let forms = [
        ("compressed", &keys),
        ("point", &points),
        ("small", small),
        ("medium", medium),
        ("large", large),
    ];
    for (backend, batch) in lanes.flat_map(|b| [256, 16, 4, 1].map(|n| (b, n))) {
        for (form, keys) in forms {
            let items: Vec<EcdsaItem<'_>> =
                signed.iter().zip(keys).map(|(s, key)| s.item(*key)).collect();
            let row = format!("{form}, {}, batches of {batch}", backend.name());
            rows.push((row, Box::new(move || verify(backend, &items, batch))));
        }
    }
    print(rows);
}

/// Runs the rows and prints their times a signature, and their ratio to the first row's.
fn print(mut rows: Vec<(String, Box<dyn FnMut() + '_>)>) {
    let mut times_ns = vec![Vec::new(); rows.len()];
    for _ in 0..ROUNDS {
        for ((_, run), times) in rows.iter_mut().zip(&mut times_ns) {
            let start = Clock::now();
            run();
            times.push(start.elapsed_ns() / COUNT as f64);
        }
    }
    for times in &mut times_ns {
        times.sort_by(f64::total_cmp);
    }
    let [theirs_median, theirs_best] = [times_ns[0][ROUNDS / 2], times_ns[0][0]];
    println!(
        "{:45} {:>9} {:>9} {:>9}   median and best against AWS-LC",
        "", "median", "best", "/s"
    );
    for ((name, _), times) in rows.iter().zip(&times_ns) {
        let (median, best) = (times[ROUNDS / 2], times[0]);
        let (by_median, by_best) = (theirs_median / median, theirs_best / best);
        let rate = 1e9 / median;
        println!(
            "{name:45} {median:6.0} ns {best:6.0} ns {rate:9.0}   {by_median:5.2} x {by_best:5.2} x"
        );
    }
}

/// The CPU time of this thread, or where the system does not tell it, the time.
enum Clock {
    Cpu(f64),
    Wall(Instant),
}

impl Clock {
    fn now() -> Self {
        cpu_ns().map_or_else(|| Self::Wall(Instant::now()), Self::Cpu)
    }

    fn elapsed_ns(&self) -> f64 {
        match self {
            Self::Cpu(start) => cpu_ns().unwrap_or(f64::NAN) - start,
            Self::Wall(start) => start.elapsed().as_nanos() as f64,
        }
    }
}

fn cpu_ns() -> Option<f64> {
    // The scheduler counts when it runs.
    std::thread::yield_now();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok()
}

/// A signed digest.
struct Signed {
    digest: [u8; 32],
    parsed: ParsedPublicKey,
    key: [u8; 33],
    y: [u8; 32],
    signature: [u8; 64],
}

impl Signed {
    fn new(i: usize) -> Self {
        let secret = sha256::digest(format!("key {i}").as_bytes());
        let digest = sha256::digest(format!("message {i}").as_bytes());
        let secret = SigningKey::from_slice(&secret).expect("below the order");
        let signature: Signature = secret.sign_prehash(&digest).expect("32 bytes");
        let point = secret.verifying_key().to_sec1_point(false);
        let bytes: [u8; 65] = point.as_bytes().try_into().expect("an uncompressed point");
        let key = secret.verifying_key().to_sec1_point(true);
        Self {
            digest,
            parsed: parse(&bytes),
            key: key.as_bytes().try_into().expect("a compressed point"),
            y: *bytes.last_chunk().expect("65 bytes end in 32"),
            signature: signature.to_bytes().into(),
        }
    }

    fn x(&self) -> &[u8; 32] {
        self.key.last_chunk().expect("33 bytes end in 32")
    }

    fn item<'a>(&'a self, key: Key<'a>) -> EcdsaItem<'a> {
        EcdsaItem { digest: &self.digest, signature: &self.signature, key }
    }
}

fn tables(signed: &[Signed], size: TableSize) -> Vec<KeyTable> {
    let table = |s: &Signed| KeyTable::new(Key::Compressed(&s.key)).expect("a key").resized(size);
    signed.iter().map(table).collect()
}

fn parse(key: &[u8]) -> ParsedPublicKey {
    ParsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key).expect("a key")
}

fn verify_by_library(key: &ParsedPublicKey, signed: &Signed) {
    let digest = Digest::import_less_safe(&signed.digest, &SHA256).expect("32 bytes");
    assert!(key.verify_digest_sig(&digest, &signed.signature).is_ok());
}

fn verify_parsed(signed: &[Signed]) {
    for s in signed {
        verify_by_library(&s.parsed, s);
    }
}

fn verify_bytes(signed: &[Signed]) {
    for s in signed {
        verify_by_library(&parse(&s.key), s);
    }
}

fn verify(backend: Backend, items: &[EcdsaItem<'_>], batch: usize) {
    let mut verdicts = [Verdict::Undecided; COUNT];
    for (items, verdicts) in items.chunks(batch).zip(verdicts.chunks_mut(batch)) {
        backend.verify_ecdsa(items, verdicts);
    }
    assert_eq!(verdicts, [Verdict::Valid; COUNT]);
}

const COUNT: usize = 512;
const ROUNDS: usize = 15;
