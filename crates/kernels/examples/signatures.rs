//! Benchmark of signature verification in lanes against libsecp256k1, which verifies one at a time.
//!
//! ```text
//! cargo run --release -p wireproof-kernels --example signatures
//! ```

mod interleaved;

use std::hint::black_box;

use interleaved::Rows;
use secp256k1::{Keypair, Message, PublicKey, SecretKey, XOnlyPublicKey, ecdsa, schnorr};
use wireproof_kernels::secp256k1::{
    Backend, EcdsaItem, Key, KeyTable, SchnorrItem, TableSize, Verdict,
};
use wireproof_kernels::sha256;

fn main() {
    let signed: Vec<Signed> = (0..COUNT).map(Signed::new).collect();
    let tables: Vec<KeyTable> = signed.iter().map(Signed::table).collect();
    let sizes = TableSize::ALL
        .map(|size| -> Vec<KeyTable> { tables.iter().map(|table| table.resized(size)).collect() });
    let keys: Vec<Key<'_>> = signed.iter().map(|s| Key::Compressed(&s.key)).collect();
    let fresh: Vec<EcdsaItem<'_>> =
        signed.iter().map(|s| s.ecdsa(Key::Compressed(&s.key))).collect();
    let cached = sizes.each_ref().map(|tables| -> Vec<EcdsaItem<'_>> {
        signed.iter().zip(tables).map(|(s, table)| s.ecdsa(Key::Cached(table))).collect()
    });
    let points: Vec<[u8; 65]> = signed.iter().map(|s| s.parsed.serialize_uncompressed()).collect();
    let known_y: Vec<EcdsaItem<'_>> =
        signed.iter().zip(&points).map(|(s, point)| s.ecdsa(key_of(point))).collect();
    let x_only: Vec<[u8; 32]> = signed.iter().map(Signed::x_only).collect();
    let schnorr: Vec<SchnorrItem<'_>> =
        signed.iter().zip(&x_only).map(|(s, x)| s.schnorr(Key::XOnly(x))).collect();

    let mut rows = Rows::new(COUNT);
    rows.push("ecdsa, libsecp256k1, key parsed before", ECDSA, || verify_parsed(&signed));
    rows.push("bip-340, libsecp256k1, key from bytes", SCHNORR, || verify_bip340(&signed));
    rows.push("ecdsa, libsecp256k1, key from bytes", ECDSA, || verify_bytes(&signed));
    rows.push("key tables, one at a time", ECDSA, || make_tables(&signed));
    rows.push("key tables, lanes", ECDSA, || drop(black_box(KeyTable::new_many(&keys))));
    rows.push("a medium table of a small one", ECDSA, || resize(&tables, TableSize::Medium));
    rows.push("a large table of a small one", ECDSA, || resize(&tables, TableSize::Large));
    let lanes = Backend::ALL.into_iter().filter(|b| *b != Backend::Portable && b.is_available());
    for (backend, batch) in lanes.flat_map(|b| [256, 64, 16, 8, 4, 2, 1].map(|n| (b, n))) {
        let fresh = &fresh;
        let known_y = &known_y;
        let schnorr = &schnorr;
        let name = |what: &str| format!("{what}, {}, batches of {batch}", backend.name());
        rows.push(name("ecdsa"), ECDSA, move || run_ecdsa(backend, fresh, batch));
        rows.push(name("ecdsa, y known"), ECDSA, move || run_ecdsa(backend, known_y, batch));
        for (cached, size) in cached.iter().zip(["small", "medium", "large"]) {
            let name = name(&format!("ecdsa, {size} table"));
            rows.push(name, ECDSA, move || run_ecdsa(backend, cached, batch));
        }
        rows.push(name("bip-340"), SCHNORR, move || run_schnorr(backend, schnorr, batch));
    }
    rows.print(ROUNDS);
}

/// The rows that others are compared with.
const ECDSA: usize = 0;
const SCHNORR: usize = 1;

/// A message signed both ways.
struct Signed {
    digest: [u8; 32],
    parsed: PublicKey,
    key: [u8; 33],
    ecdsa: [u8; 64],
    schnorr: [u8; 64],
    challenge: [u8; 32],
}

impl Signed {
    fn new(i: usize) -> Self {
        let secret = sha256::digest(format!("key {i}").as_bytes());
        let digest = sha256::digest(format!("message {i}").as_bytes());
        let secret = SecretKey::from_secret_bytes(secret).expect("below the order");
        let pair = Keypair::from_secret_key(&secret);
        let parsed = PublicKey::from_secret_key(&secret);
        let schnorr = schnorr::sign_no_aux_rand(&digest, &pair).to_byte_array();
        let x = pair.x_only_public_key().0.to_byte_array();
        Self {
            digest,
            parsed,
            key: parsed.serialize(),
            ecdsa: ecdsa::sign(Message::from_digest(digest), &secret).serialize_compact(),
            schnorr,
            challenge: challenge(&schnorr, &x, &digest),
        }
    }

    fn x_only(&self) -> [u8; 32] {
        *self.key.last_chunk().expect("33 bytes end in 32")
    }

    fn table(&self) -> KeyTable {
        KeyTable::new(Key::Compressed(&self.key)).expect("a key")
    }

    fn ecdsa<'a>(&'a self, key: Key<'a>) -> EcdsaItem<'a> {
        EcdsaItem { digest: &self.digest, signature: &self.ecdsa, key }
    }

    fn schnorr<'a>(&'a self, key: Key<'a>) -> SchnorrItem<'a> {
        SchnorrItem { challenge: &self.challenge, signature: &self.schnorr, key }
    }
}

/// The e of BIP-340.
fn challenge(signature: &[u8; 64], x: &[u8; 32], message: &[u8; 32]) -> [u8; 32] {
    let tag = sha256::digest(b"BIP0340/challenge");
    sha256::digest(&[&tag, &tag, &signature[..32], x, message].concat())
}

fn verify_parsed(signed: &[Signed]) {
    for s in signed {
        let signature = ecdsa::Signature::from_compact(&s.ecdsa).expect("in range");
        assert!(ecdsa::verify(&signature, Message::from_digest(s.digest), &s.parsed).is_ok());
    }
}

fn verify_bytes(signed: &[Signed]) {
    for s in signed {
        let key = PublicKey::from_slice(&s.key).expect("a key");
        let signature = ecdsa::Signature::from_compact(&s.ecdsa).expect("in range");
        assert!(ecdsa::verify(&signature, Message::from_digest(s.digest), &key).is_ok());
    }
}

fn verify_bip340(signed: &[Signed]) {
    for s in signed {
        let key = XOnlyPublicKey::from_byte_array(s.x_only()).expect("a key");
        let signature = schnorr::Signature::from_byte_array(s.schnorr);
        assert!(schnorr::verify(&signature, &s.digest, &key).is_ok());
    }
}

fn make_tables(signed: &[Signed]) {
    for s in signed {
        black_box(s.table());
    }
}

fn resize(tables: &[KeyTable], size: TableSize) {
    for table in tables {
        black_box(table.resized(size));
    }
}

/// The key of an uncompressed point.
fn key_of(point: &[u8; 65]) -> Key<'_> {
    let (halves, _) = point[1..].as_chunks::<32>();
    Key::Point { x: &halves[0], y: &halves[1] }
}

fn run_ecdsa(backend: Backend, items: &[EcdsaItem<'_>], batch: usize) {
    let mut verdicts = [Verdict::Undecided; COUNT];
    for (items, verdicts) in items.chunks(batch).zip(verdicts.chunks_mut(batch)) {
        backend.verify_ecdsa(items, verdicts);
    }
    assert_eq!(verdicts, [Verdict::Valid; COUNT]);
}

fn run_schnorr(backend: Backend, items: &[SchnorrItem<'_>], batch: usize) {
    let mut verdicts = [Verdict::Undecided; COUNT];
    for (items, verdicts) in items.chunks(batch).zip(verdicts.chunks_mut(batch)) {
        backend.verify_schnorr(items, verdicts);
    }
    assert_eq!(verdicts, [Verdict::Valid; COUNT]);
}

const COUNT: usize = 1024;
const ROUNDS: usize = 21;
