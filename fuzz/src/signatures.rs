//! The batched verifiers agree with libsecp256k1 on signatures.
//!
//! The input is cut into claims. A claim brings a secret key, 32 bytes to sign, a signature and a key,
//! and a first byte that tells which of the last two are kept and which are made honestly from the
//! secret, and which bit of all is flipped then.

use kernels::secp256k1::{
    Backend, EcdsaItem, Key, KeyTable, SchnorrItem, Verdict, verify_ecdsa_many, verify_schnorr_many,
};
use kernels::sha256;
use secp256k1::{Keypair, Message, PublicKey, SecretKey, XOnlyPublicKey, ecdsa, schnorr};

/// Runs the target on one input.
pub(crate) fn run(input: &[u8]) {
    let claims: Vec<Claim> = input.as_chunks::<LEN>().0.iter().take(17).map(Claim::read).collect();
    let tables: Vec<Option<KeyTable>> =
        claims.iter().map(|claim| KeyTable::new(Key::Compressed(&claim.key))).collect();
    judge_ecdsa(&claims, &tables);
    judge_schnorr(&claims, &tables);
}

/// First byte, flipped bit, secret, signed bytes, signature, key.
const LEN: usize = 1 + 2 + 32 + 32 + 64 + 33;

struct Claim {
    digest: [u8; 32],
    ecdsa: [u8; 64],
    schnorr: [u8; 64],
    key: [u8; 33],
}

impl Claim {
    fn read(bytes: &[u8; LEN]) -> Self {
        let field = |at: usize, len: usize| &bytes[at..at + len];
        let mut claim = Self {
            digest: field(35, 32).try_into().expect("32 bytes"),
            ecdsa: field(67, 64).try_into().expect("64 bytes"),
            schnorr: field(67, 64).try_into().expect("64 bytes"),
            key: field(131, 33).try_into().expect("33 bytes"),
        };
        if let Ok(secret) = SecretKey::from_secret_bytes(field(3, 32).try_into().expect("32 bytes"))
        {
            claim.make_honest(&secret, bytes[0]);
        }
        if bytes[0] & 4 != 0 {
            claim.flip(u16::from_be_bytes([bytes[1], bytes[2]]));
        }
        claim
    }

    fn make_honest(&mut self, secret: &SecretKey, mode: u8) {
        let pair = Keypair::from_secret_key(secret);
        if mode & 1 != 0 {
            let message = Message::from_digest(self.digest);
            self.ecdsa = ecdsa::sign(message, secret).serialize_compact();
            self.schnorr = schnorr::sign_no_aux_rand(&self.digest, &pair).to_byte_array();
        }
        if mode & 2 != 0 {
            self.key = PublicKey::from_secret_key(secret).serialize();
        }
    }

    fn flip(&mut self, bit: u16) {
        let (at, bit) = (usize::from(bit / 8) % 129, bit % 8);
        let mask = 1 << bit;
        match at {
            0..32 => self.digest[at] ^= mask,
            32..96 => {
                self.ecdsa[at - 32] ^= mask;
                self.schnorr[at - 32] ^= mask;
            }
            _ => self.key[at - 96] ^= mask,
        }
    }

    /// The verdict of libsecp256k1, with high s allowed as in the lanes.
    fn is_ecdsa(&self) -> bool {
        let Ok(key) = PublicKey::from_byte_array_compressed(self.key) else { return false };
        let Ok(mut signature) = ecdsa::Signature::from_compact(&self.ecdsa) else { return false };
        signature.normalize_s();
        ecdsa::verify(&signature, Message::from_digest(self.digest), &key).is_ok()
    }

    fn x(&self) -> &[u8; 32] {
        self.key.last_chunk().expect("33 bytes")
    }

    fn is_schnorr(&self) -> bool {
        let Ok(key) = XOnlyPublicKey::from_byte_array(*self.x()) else { return false };
        let signature = schnorr::Signature::from_byte_array(self.schnorr);
        schnorr::verify(&signature, &self.digest, &key).is_ok()
    }

    /// The e of BIP-340.
    fn challenge(&self) -> [u8; 32] {
        let tag = sha256::digest(b"BIP0340/challenge");
        let parts = [&tag[..], &tag, &self.schnorr[..32], self.x(), &self.digest];
        sha256::digest(&parts.concat())
    }
}

fn judge_ecdsa(claims: &[Claim], tables: &[Option<KeyTable>]) {
    let truth: Vec<bool> = claims.iter().map(Claim::is_ecdsa).collect();
    let fresh: Vec<EcdsaItem<'_>> = claims
        .iter()
        .map(|claim| EcdsaItem {
            digest: &claim.digest,
            signature: &claim.ecdsa,
            key: Key::Compressed(&claim.key),
        })
        .collect();
    let cached = fresh.iter().zip(tables).map(|(item, table)| match table {
        Some(table) => EcdsaItem { key: Key::Cached(table), ..*item },
        None => *item,
    });
    let cached: Vec<EcdsaItem<'_>> = cached.collect();
    let mut verdicts = vec![Verdict::Undecided; claims.len()];
    for items in [&fresh, &cached] {
        verify_ecdsa_many(items, &mut verdicts);
        assert_agree(&verdicts, &truth);
        Backend::Portable.verify_ecdsa(items, &mut verdicts);
        assert_agree(&verdicts, &truth);
    }
}

fn judge_schnorr(claims: &[Claim], tables: &[Option<KeyTable>]) {
    let truth: Vec<bool> = claims.iter().map(Claim::is_schnorr).collect();
    let challenges: Vec<[u8; 32]> = claims.iter().map(Claim::challenge).collect();
    let fresh: Vec<SchnorrItem<'_>> = claims
        .iter()
        .zip(&challenges)
        .map(|(claim, challenge)| SchnorrItem {
            challenge,
            signature: &claim.schnorr,
            key: Key::XOnly(claim.x()),
        })
        .collect();
    let cached = fresh.iter().zip(tables).map(|(item, table)| match table {
        Some(table) => SchnorrItem { key: Key::Cached(table), ..*item },
        None => *item,
    });
    let cached: Vec<SchnorrItem<'_>> = cached.collect();
    let mut verdicts = vec![Verdict::Undecided; claims.len()];
    for items in [&fresh, &cached] {
        verify_schnorr_many(items, &mut verdicts);
        assert_agree(&verdicts, &truth);
        Backend::Portable.verify_schnorr(items, &mut verdicts);
        assert_agree(&verdicts, &truth);
    }
}

/// Undecided is no claim; any other verdict must be the library's.
fn assert_agree(verdicts: &[Verdict], truth: &[bool]) {
    for (at, (verdict, valid)) in verdicts.iter().zip(truth).enumerate() {
        match verdict {
            Verdict::Valid => assert!(valid, "claim {at} accepted"),
            Verdict::Invalid => assert!(!valid, "claim {at} refused"),
            Verdict::Undecided => {}
        }
    }
}
