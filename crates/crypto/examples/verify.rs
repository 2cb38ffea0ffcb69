//! Benchmark of signature verification: single, in batches and with a cache, against the libraries alone.
//!
//! ```text
//! cargo run --release -p wireproof-crypto --example verify [part of the names of rows]
//! ```
//!
//! The rows run interleaved, so that other load on the machine affects all of them; medians and bests of
//! the rounds.

use std::hint::black_box;
use std::time::Instant;

use aws_lc_rs::digest::{self, SHA256};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, ParsedPublicKey};
use p256::ecdsa::signature::hazmat::PrehashVerifier;
use secp256k1::{Message, ecdsa, schnorr as library_schnorr};
use wireproof_crypto::{
    CompressedKey, Curve, Digest, KeyCache, KeyRef, PublicKey, SecretKey, SignatureCheck,
    SignedData, schnorr, verify_many, verify_many_cached,
};

fn main() {
    let signed = Curve::ALL.map(|curve| Vec::from_iter((0..COUNT).map(|at| Item::new(curve, at))));
    let [k256, p256] = &signed;
    let schnorr = Vec::from_iter((0..COUNT).map(SchnorrItem::new));
    let (mut warm, mut warm_p256) = (cache(), cache());
    let mut rows: Vec<(&str, Run<'_>)> = vec![
        ("K-256, libsecp256k1, key parsed", Box::new(|| k256.iter().for_each(Item::by_libsecp))),
        ("K-256, k256, key parsed", Box::new(|| k256.iter().for_each(Item::by_k256))),
        ("K-256, verify_digest, key parsed", Box::new(|| k256.iter().for_each(Item::parsed))),
        (
            "K-256, verify_digest, key from did:key",
            Box::new(|| k256.iter().for_each(Item::compressed)),
        ),
        ("K-256, verify_many, keys parsed", Box::new(|| many(k256, Item::check))),
        ("K-256, verify_many, keys from did:key", Box::new(|| many(k256, Item::compressed_check))),
        ("K-256, verify_many_cached, warm", Box::new(|| cached(k256, &mut warm))),
        ("K-256, verify_many_cached, cold", Box::new(|| cached(k256, &mut cache()))),
        ("P-256, aws-lc-rs, key parsed", Box::new(|| p256.iter().for_each(Item::by_aws_lc))),
        ("P-256, p256, key parsed", Box::new(|| p256.iter().for_each(Item::by_p256))),
        ("P-256, verify_digest, key parsed", Box::new(|| p256.iter().for_each(Item::parsed))),
        (
            "P-256, verify_digest, key from did:key",
            Box::new(|| p256.iter().for_each(Item::compressed)),
        ),
        ("P-256, verify_many_cached, warm", Box::new(|| cached(p256, &mut warm_p256))),
        (
            "BIP-340, libsecp256k1, key from bytes",
            Box::new(|| schnorr.iter().for_each(SchnorrItem::by_libsecp)),
        ),
        (
            "BIP-340, verify, key from bytes",
            Box::new(|| schnorr.iter().for_each(SchnorrItem::single)),
        ),
        ("BIP-340, verify_many", Box::new(|| many_schnorr(&schnorr))),
        ("did:key, K-256, read", Box::new(|| k256.iter().for_each(Item::read))),
        ("did:key, K-256, written", Box::new(|| k256.iter().for_each(Item::write))),
    ];
    let filter = std::env::args().nth(1).unwrap_or_default();
    rows.retain(|(name, _)| name.contains(&filter));
    let mut times_ns = vec![Vec::new(); rows.len()];
    for _ in 0..ROUNDS {
        for ((_, run), times) in rows.iter_mut().zip(&mut times_ns) {
            let start = Instant::now();
            run();
            times.push(start.elapsed().as_nanos() as f64 / COUNT as f64);
        }
    }
    println!("{:42} {:>9} {:>9} {:>9}", "", "median", "best", "/s");
    for ((name, _), times) in rows.iter().zip(&mut times_ns) {
        times.sort_by(f64::total_cmp);
        let (median, best) = (times[ROUNDS / 2], times[0]);
        println!("{name:42} {median:6.0} ns {best:6.0} ns {:9.0}", 1e9 / median);
    }
}

type Run<'r> = Box<dyn FnMut() + 'r>;

fn cache() -> KeyCache {
    KeyCache::new(16 << 20, [7; 16])
}

fn many(items: &[Item], check: fn(&Item) -> SignatureCheck<'_>) {
    let checks: Vec<SignatureCheck<'_>> = items.iter().map(check).collect();
    assert!(verify_many(&checks).iter().all(Result::is_ok));
}

fn cached(items: &[Item], cache: &mut KeyCache) {
    let checks: Vec<SignatureCheck<'_>> = items.iter().map(Item::compressed_check).collect();
    let mut verdicts = vec![Ok(()); checks.len()];
    verify_many_cached(&checks, cache, &mut verdicts);
    assert!(verdicts.iter().all(Result::is_ok));
}

fn many_schnorr(items: &[SchnorrItem]) {
    let checks: Vec<schnorr::SignatureCheck<'_>> = items.iter().map(SchnorrItem::check).collect();
    assert!(schnorr::verify_many(&checks).iter().all(Result::is_ok));
}

/// A signature by a key of its own in the forms that the libraries take.
struct Item {
    digest: Digest,
    signature: [u8; 64],
    did_key: String,
    key: PublicKey,
    libraries: Libraries,
}

enum Libraries {
    K256(secp256k1::PublicKey, k256::ecdsa::VerifyingKey),
    P256(ParsedPublicKey, p256::ecdsa::VerifyingKey),
}

impl Item {
    fn new(curve: Curve, at: usize) -> Self {
        let mut bytes = [0x5a; 32];
        bytes[..8].copy_from_slice(&at.to_be_bytes());
        let secret = SecretKey::from_bytes(curve, &bytes).expect("a small number");
        let (key, digest) = (secret.public_key(), bytes);
        let sec1 = key.to_sec1();
        let libraries = match curve {
            Curve::K256 => Libraries::K256(
                secp256k1::PublicKey::from_slice(&sec1).expect("a point"),
                k256::ecdsa::VerifyingKey::from_sec1_bytes(&sec1).expect("a point"),
            ),
            Curve::P256 => Libraries::P256(
                ParsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, sec1).expect("a point"),
                p256::ecdsa::VerifyingKey::from_sec1_bytes(&sec1).expect("a point"),
            ),
        };
        let (signature, did_key) = (secret.sign_digest(&digest), key.to_did_key());
        Self { digest, signature, did_key, key, libraries }
    }

    fn check(&self) -> SignatureCheck<'_> {
        SignatureCheck {
            signed: SignedData::Digest(self.digest),
            signature: &self.signature,
            key: KeyRef::Parsed(&self.key),
        }
    }

    fn compressed_check(&self) -> SignatureCheck<'_> {
        let key = CompressedKey::from_did_key(&self.did_key).expect("a key");
        SignatureCheck { key: KeyRef::Compressed(key), ..self.check() }
    }

    fn parsed(&self) {
        assert!(self.key.verify_digest(&self.digest, &self.signature).is_ok());
    }

    fn compressed(&self) {
        let key = PublicKey::from_did_key(&self.did_key).expect("a key");
        assert!(key.verify_digest(&self.digest, &self.signature).is_ok());
    }

    fn read(&self) {
        black_box(CompressedKey::from_did_key(&self.did_key).expect("a key"));
    }

    fn write(&self) {
        black_box(self.key.to_did_key());
    }

    fn by_libsecp(&self) {
        let Libraries::K256(key, _) = &self.libraries else { unreachable!() };
        let signature = ecdsa::Signature::from_compact(&self.signature).expect("in range");
        assert!(ecdsa::verify(&signature, Message::from_digest(self.digest), key).is_ok());
    }

    fn by_k256(&self) {
        let Libraries::K256(_, key) = &self.libraries else { unreachable!() };
        let signature = k256::ecdsa::Signature::from_slice(&self.signature).expect("in range");
        assert!(key.verify_prehash(&self.digest, &signature).is_ok());
    }

    fn by_aws_lc(&self) {
        let Libraries::P256(key, _) = &self.libraries else { unreachable!() };
        let digest = digest::Digest::import_less_safe(&self.digest, &SHA256).expect("32 bytes");
        assert!(key.verify_digest_sig(&digest, &self.signature).is_ok());
    }

    fn by_p256(&self) {
        let Libraries::P256(_, key) = &self.libraries else { unreachable!() };
        let signature = p256::ecdsa::Signature::from_slice(&self.signature).expect("in range");
        assert!(key.verify_prehash(&self.digest, &signature).is_ok());
    }
}

/// A BIP-340 signature by a key of its own.
struct SchnorrItem {
    message: [u8; 32],
    signature: [u8; 64],
    key: [u8; 32],
}

impl SchnorrItem {
    fn new(at: usize) -> Self {
        let mut message = [0x5a; 32];
        message[..8].copy_from_slice(&at.to_be_bytes());
        let secret = schnorr::SecretKey::from_bytes(&message).expect("a small number");
        let signature = secret.sign(&message, &[0; 32]);
        Self { message, signature, key: secret.public_key().to_bytes() }
    }

    fn check(&self) -> schnorr::SignatureCheck<'_> {
        schnorr::SignatureCheck {
            message: &self.message,
            signature: &self.signature,
            key: schnorr::KeyRef::Bytes(&self.key),
        }
    }

    fn single(&self) {
        let key = schnorr::XOnlyKey::from_bytes(&self.key).expect("a point");
        assert!(key.verify(&self.message, &self.signature).is_ok());
    }

    fn by_libsecp(&self) {
        let key = secp256k1::XOnlyPublicKey::from_byte_array(self.key).expect("a point");
        let signature = library_schnorr::Signature::from_byte_array(self.signature);
        assert!(library_schnorr::verify(&signature, &self.message, &key).is_ok());
    }
}

const COUNT: usize = 1024;
const ROUNDS: usize = 11;
