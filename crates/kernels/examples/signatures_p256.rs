//! Benchmark of P-256 verification in lanes against AWS-LC, which verifies one at a time.
//!
//! ```text
//! cargo run --release -p wireproof-kernels --example signatures_p256
//! ```

mod interleaved;

use std::hint::black_box;

use aws_lc_rs::digest::{Digest, SHA256};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, ParsedPublicKey};
use interleaved::Rows;
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

    let mut rows = Rows::new(COUNT);
    rows.push("AWS-LC, key parsed before", AWS_LC, || verify_parsed(&signed));
    rows.push("AWS-LC, key from bytes", AWS_LC, || verify_bytes(&signed));
    rows.push("key tables, lanes", AWS_LC, || drop(black_box(KeyTable::new_many(&keys))));
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
            let name = format!("{form}, {}, batches of {batch}", backend.name());
            rows.push(name, AWS_LC, move || verify(backend, &items, batch));
        }
    }
    rows.print(ROUNDS);
}

/// The row that others are compared with.
const AWS_LC: usize = 0;

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
