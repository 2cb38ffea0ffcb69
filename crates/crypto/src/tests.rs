//! Keys and signatures against RustCrypto's `k256` and `p256`, and at the edges of every rule.

use std::hash::{DefaultHasher, Hash, Hasher};

use k256::elliptic_curve::PrimeField;
use k256::elliptic_curve::ops::Reduce;
use k256::elliptic_curve::point::AffineCoordinates;
use k256::elliptic_curve::sec1::ToSec1Point;

use crate::schnorr::{self, XOnlyKey};
use crate::*;

/// Numbers that look random and are the same on every run (xorshift64*).
struct Rng(u64);

impl Rng {
    fn new(seed: u64) -> Self {
        Self(seed ^ 0x9e37_79b9_7f4a_7c15)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 32) as usize % bound
    }

    fn bytes(&mut self) -> [u8; 32] {
        std::array::from_fn(|_| self.next() as u8)
    }

    fn secret(&mut self, curve: Curve) -> SecretKey {
        SecretKey::from_bytes(curve, &self.bytes()).expect("all but one draw in 2³² are a key")
    }
}

/// A signature with its digest and key.
#[derive(Clone)]
pub(crate) struct Triple {
    pub(crate) digest: Digest,
    pub(crate) signature: Vec<u8>,
    pub(crate) key: PublicKey,
}

impl Triple {
    fn valid(curve: Curve, rng: &mut Rng) -> Self {
        let (secret, digest) = (rng.secret(curve), rng.bytes());
        let signature = secret.sign_digest(&digest).to_vec();
        Self { digest, signature, key: secret.public_key() }
    }

    /// [`Triple::any`] of a generator with this seed.
    pub(crate) fn random(seed: u64) -> Self {
        Self::any(&mut Rng::new(seed))
    }

    /// A valid triple, or one damaged in a way that `rng` chooses.
    fn any(rng: &mut Rng) -> Self {
        let curve = Curve::ALL[rng.below(2)];
        let mut triple = Self::valid(curve, rng);
        match rng.below(8) {
            0 => triple.signature[rng.below(64)] ^= 1 << rng.below(8),
            1 => triple.digest[rng.below(32)] ^= 1 << rng.below(8),
            2 => triple.key = rng.secret(curve).public_key(),
            3 => {
                let any = Curve::ALL[rng.below(2)];
                triple.key = rng.secret(any).public_key();
            }
            4 => triple.signature.rotate_left(32),
            5 => negate_s(curve, &mut triple.signature),
            _ => {}
        }
        triple
    }

    fn verdict(&self) -> SignatureVerdict {
        self.key.verify_digest(&self.digest, &self.signature)
    }

    fn verdict_allowing_high_s(&self) -> SignatureVerdict {
        self.key.verify_digest_allowing_high_s(&self.digest, &self.signature)
    }

    fn check(&self) -> SignatureCheck<'_> {
        SignatureCheck {
            signed: SignedData::Digest(self.digest),
            signature: &self.signature,
            key: KeyRef::Parsed(&self.key),
        }
    }

    fn compressed_check(&self) -> SignatureCheck<'_> {
        SignatureCheck { key: KeyRef::Compressed(*self.key.as_compressed()), ..self.check() }
    }
}

/// s becomes n − s.
fn negate_s(curve: Curve, signature: &mut [u8]) {
    let mut borrow = 0;
    for (byte, order) in signature[32..].iter_mut().zip(curve.order()).rev() {
        let difference = i16::from(*order) - i16::from(*byte) - borrow;
        borrow = i16::from(difference < 0);
        *byte = difference as u8;
    }
}

fn plus_one(number: &[u8; 32]) -> [u8; 32] {
    let mut sum = *number;
    for byte in sum.iter_mut().rev() {
        *byte = byte.wrapping_add(1);
        if *byte != 0 {
            break;
        }
    }
    sum
}

/// RustCrypto's verdict on a triple by the strict rules.
fn oracle(triple: &Triple) -> bool {
    use k256::ecdsa::signature::hazmat::PrehashVerifier;
    let sec1 = triple.key.to_sec1();
    match triple.key.curve() {
        Curve::K256 => {
            let key = k256::ecdsa::VerifyingKey::from_sec1_bytes(&sec1).unwrap();
            k256::ecdsa::Signature::from_slice(&triple.signature).is_ok_and(|signature| {
                signature.normalize_s() == signature
                    && key.verify_prehash(&triple.digest, &signature).is_ok()
            })
        }
        Curve::P256 => {
            let key = p256::ecdsa::VerifyingKey::from_sec1_bytes(&sec1).unwrap();
            p256::ecdsa::Signature::from_slice(&triple.signature).is_ok_and(|signature| {
                signature.normalize_s() == signature
                    && key.verify_prehash(&triple.digest, &signature).is_ok()
            })
        }
    }
}

#[test]
fn random_triples_get_the_verdict_of_another_library() {
    let mut rng = Rng::new(1);
    let (mut valid, mut invalid) = (0, 0);
    for _ in 0..4_000 {
        let triple = Triple::any(&mut rng);
        assert_eq!(triple.verdict().is_ok(), oracle(&triple));
        *if triple.verdict().is_ok() { &mut valid } else { &mut invalid } += 1;
    }
    assert!(valid > 800 && invalid > 2_000, "{valid} valid, {invalid} invalid");
}

#[test]
fn a_signature_is_deterministic_low_and_equal_to_another_library_s() {
    use k256::ecdsa::signature::hazmat::PrehashSigner;
    let mut rng = Rng::new(2);
    for _ in 0..100 {
        let (bytes, digest) = (rng.bytes(), rng.bytes());
        let theirs: k256::ecdsa::Signature =
            k256::ecdsa::SigningKey::from_slice(&bytes).unwrap().sign_prehash(&digest).unwrap();
        let ours = SecretKey::from_bytes(Curve::K256, &bytes).unwrap().sign_digest(&digest);
        assert_eq!(ours[..], theirs.normalize_s().to_bytes()[..]);
        for curve in Curve::ALL {
            let secret = SecretKey::from_bytes(curve, &bytes).unwrap();
            let signature = secret.sign_digest(&digest);
            assert_eq!(signature, secret.sign_digest(&digest));
            assert_eq!(secret.public_key().verify_digest(&digest, &signature), Ok(()));
        }
    }
}

#[test]
fn the_nonce_of_p256_is_that_of_rfc_6979() {
    // Appendix A.2.5, SHA-256, "sample" and "test"; both of its s are high.
    let secret = "c9afa9d845ba75166b5c215767b1d6934e50c3db36e89b127b8a622b120f6721";
    let vectors: [(&[u8], &str, &str); 2] = [
        (
            b"sample",
            "efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716",
            "f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8",
        ),
        (
            b"test",
            "f1abb023518351cd71d881567b1ea663ed3efcf6c5132b354f28d3b0b7d38367",
            "019f4113742a2b14bd25926b49c649155f267e60d3814b4c0cc84250e46f0083",
        ),
    ];
    let secret = SecretKey::from_bytes(Curve::P256, &hex(secret)).unwrap();
    for (message, r, s) in vectors {
        let mut expected = [hex(r), hex(s)].concat();
        if expected[32..] > Curve::P256.half_order()[..] {
            negate_s(Curve::P256, &mut expected);
        }
        assert_eq!(secret.sign(message)[..], expected);
    }
}

fn hex(text: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    assert!(kernels::hex::decode(text.as_bytes(), &mut bytes));
    bytes
}

#[test]
fn r_and_s_out_of_range_are_reported_as_such() {
    for curve in Curve::ALL {
        let good = Triple::valid(curve, &mut Rng::new(3));
        for bad in [[0; 32], *curve.order(), plus_one(curve.order()), [0xff; 32]] {
            let mut triple = good.clone();
            triple.signature[..32].copy_from_slice(&bad);
            assert_eq!(triple.verdict(), Err(SignatureFault::RRange));
            assert_eq!(triple.verdict_allowing_high_s(), Err(SignatureFault::RRange));
            let mut triple = good.clone();
            triple.signature[32..].copy_from_slice(&bad);
            assert_eq!(triple.verdict(), Err(SignatureFault::SRange));
            assert_eq!(triple.verdict_allowing_high_s(), Err(SignatureFault::SRange));
        }
    }
}

#[test]
fn the_twin_of_a_signature_is_rejected_except_by_the_lenient_form() {
    for curve in Curve::ALL {
        let mut triple = Triple::valid(curve, &mut Rng::new(4));
        assert_eq!(triple.verdict_allowing_high_s(), Ok(()));
        negate_s(curve, &mut triple.signature);
        assert_eq!(triple.verdict(), Err(SignatureFault::HighS));
        assert_eq!(triple.verdict_allowing_high_s(), Ok(()));
        triple.digest[0] ^= 1;
        assert_eq!(triple.verdict(), Err(SignatureFault::HighS));
        assert_eq!(triple.verdict_allowing_high_s(), Err(SignatureFault::Mismatch));
    }
}

/// A triple whose equation holds for the given s: d = (s·k − z) / r.
macro_rules! triple_with_s {
    ($library:ident, $curve:expr, $s:expr) => {{
        let scalar = |bytes: &[u8; 32]| $library::Scalar::from_repr((*bytes).into()).unwrap();
        let (nonce, digest) = (scalar(&[0x21; 32]), [0x17; 32]);
        let point = ($library::ProjectivePoint::GENERATOR * nonce).to_affine();
        let r = <$library::Scalar as Reduce<$library::FieldBytes>>::reduce(&point.x());
        let d = (scalar($s) * nonce - scalar(&digest)) * r.invert().unwrap();
        let key = ($library::ProjectivePoint::GENERATOR * d).to_affine().to_sec1_point(true);
        Triple {
            digest,
            signature: [r.to_repr().as_slice(), $s].concat(),
            key: PublicKey::from_sec1($curve, key.as_bytes()).unwrap(),
        }
    }};
}

#[test]
fn half_the_order_is_the_last_low_s() {
    for curve in Curve::ALL {
        for (s, expected) in [
            (*curve.half_order(), Ok(())),
            (plus_one(curve.half_order()), Err(SignatureFault::HighS)),
            (plus_one(&[0; 32]), Ok(())),
        ] {
            let triple = match curve {
                Curve::K256 => triple_with_s!(k256, curve, &s),
                Curve::P256 => triple_with_s!(p256, curve, &s),
            };
            assert_eq!(triple.verdict_allowing_high_s(), Ok(()));
            assert_eq!(triple.verdict(), expected);
            assert_eq!(verified(&[triple.check(); 9], None), [expected; 9]);
            assert_eq!(verified(&[triple.compressed_check(); 9], None), [expected; 9]);
        }
    }
}

#[test]
fn a_signature_of_another_length_or_in_der_is_rejected() {
    for curve in Curve::ALL {
        let good = Triple::valid(curve, &mut Rng::new(5));
        let der = match curve {
            Curve::K256 => {
                let signature = k256::ecdsa::Signature::from_slice(&good.signature).unwrap();
                signature.to_der().as_bytes().to_vec()
            }
            Curve::P256 => {
                let signature = p256::ecdsa::Signature::from_slice(&good.signature).unwrap();
                signature.to_der().as_bytes().to_vec()
            }
        };
        let longer = [&good.signature[..], &[0]].concat();
        for bad in [&der[..], &longer, &good.signature[..63], &[]] {
            let expected = Err(SignatureFault::Length(bad.len()));
            assert_eq!(good.key.verify_digest(&good.digest, bad), expected);
            assert_eq!(good.key.verify_digest_allowing_high_s(&good.digest, bad), expected);
            assert_eq!(
                verify_many(&[SignatureCheck { signature: bad, ..good.check() }]),
                [expected]
            );
        }
    }
}

#[test]
fn a_message_is_hashed_before_it_is_verified() {
    for curve in Curve::ALL {
        let secret = Rng::new(6).secret(curve);
        let key = secret.public_key();
        let signature = secret.sign(b"hello");
        assert_eq!(signature, secret.sign_digest(&kernels::sha256::digest(b"hello")));
        assert_eq!(key.verify(b"hello", &signature), Ok(()));
        assert_eq!(key.verify_allowing_high_s(b"hello", &signature), Ok(()));
        assert_eq!(key.verify(b"hell", &signature), Err(SignatureFault::Mismatch));
    }
}

#[test]
fn every_form_of_a_key_reads_as_the_same_key() {
    let mut rng = Rng::new(7);
    for curve in Curve::ALL {
        for _ in 0..50 {
            let key = rng.secret(curve).public_key();
            let (compressed, uncompressed) = (key.to_sec1(), key.to_sec1_uncompressed());
            let bare = format!("z{}", bs58::encode(compressed).into_string());
            let kind = curve.legacy_type();
            let readings = [
                PublicKey::from_did_key(&key.to_did_key()),
                PublicKey::from_did_key(&key.to_string()),
                PublicKey::from_multikey(&key.to_multikey()),
                PublicKey::from_verification_method("Multikey", &key.to_multikey()),
                PublicKey::from_verification_method(kind, &key.to_legacy()),
                PublicKey::from_verification_method(kind, &bare),
                PublicKey::from_legacy(curve, &key.to_legacy()),
                PublicKey::from_sec1(curve, &compressed),
                PublicKey::from_sec1(curve, &uncompressed),
                (*key.as_compressed()).try_into(),
            ];
            for read in readings {
                let read = read.unwrap();
                assert_eq!(read, key);
                assert_eq!(read.to_sec1_uncompressed(), uncompressed);
            }
        }
    }
}

#[test]
fn text_that_is_not_a_key_is_rejected_with_the_rule() {
    let good = Rng::new(8).secret(Curve::K256).public_key();
    let multikey = good.to_multikey();
    let coded = |code: &[u8], point: &[u8]| {
        format!("z{}", bs58::encode([code, point].concat()).into_string())
    };
    let point = good.to_sec1();
    let cases = [
        (String::new(), KeyError::Multibase),
        (format!("Z{}", &multikey[1..]), KeyError::Multibase),
        (multikey[1..].to_owned(), KeyError::Multibase),
        ("z".to_owned(), KeyError::Multicodec),
        ("z0".to_owned(), KeyError::Base58),
        (format!("{multikey} "), KeyError::Base58),
        (format!("z{}", "2".repeat(5_000)), KeyError::Base58),
        (coded(&[0xed, 0x01], &point), KeyError::Ed25519),
        (coded(&[0x85, 0x24], &point), KeyError::Multicodec),
        (coded(&[0xe7], &point), KeyError::Multicodec),
        (coded(&[0xe7, 0x01], &point[..32]), KeyError::Length(32)),
        (coded(&[0xe7, 0x01], &good.to_sec1_uncompressed()), KeyError::Length(65)),
        (coded(&[0xe7, 0x01], &[5; 33]), KeyError::Form(5)),
        (coded(&[0xe7, 0x01], &[&[2], &[0xff; 32][..]].concat()), KeyError::NotOnCurve),
    ];
    for (text, expected) in cases {
        assert_eq!(PublicKey::from_multikey(&text), Err(expected), "{text}");
        assert_eq!(PublicKey::from_did_key(&format!("did:key:{text}")), Err(expected));
        assert_eq!(PublicKey::from_did_key(&text), Err(KeyError::DidKey));
    }
    let unknown = PublicKey::from_verification_method("JsonWebKey2020", &multikey);
    assert_eq!(unknown, Err(KeyError::MethodType));
    let wrong = PublicKey::from_verification_method(Curve::K256.legacy_type(), &multikey);
    assert_eq!(wrong, Err(KeyError::MultikeyInLegacyType));
    let message =
        "a Multikey in a verification method of a legacy type, whose key has no multicodec";
    assert_eq!(wrong.unwrap_err().to_string(), message);
    let no_multicodec = PublicKey::from_legacy(Curve::K256, &coded(&[1, 2], &point));
    assert_eq!(no_multicodec, Err(KeyError::Length(35)));
    let too_short = PublicKey::from_legacy(Curve::K256, &coded(&[0xe7, 0x01], &point[..32]));
    assert_eq!(too_short, Err(KeyError::Length(34)));
}

#[test]
fn keys_of_different_points_are_unequal_and_hash_apart() {
    fn hash(content: impl Hash) -> u64 {
        let mut hasher = DefaultHasher::new();
        content.hash(&mut hasher);
        hasher.finish()
    }
    let mut rng = Rng::new(20);
    for curve in Curve::ALL {
        let [a, b] = [(); 2].map(|()| rng.secret(curve).public_key());
        assert!(a == a.clone() && a != b);
        assert!(hash(&a) == hash(a.clone()) && hash(&a) != hash(&b));
    }
    let x_only = |byte| schnorr::SecretKey::from_bytes(&[byte; 32]).unwrap().public_key();
    let [a, again, b] = [1, 1, 2].map(x_only);
    assert!(a == again && a != b);
    assert!(hash(a) == hash(again) && hash(a) != hash(b));
    assert_eq!(a.to_string(), kernels::hex::encode(a.as_bytes()));
}

#[test]
fn each_curve_has_its_name_in_json_web_tokens() {
    assert_eq!(Curve::K256.jwt_algorithm(), "ES256K");
    assert_eq!(Curve::P256.jwt_algorithm(), "ES256");
}

#[test]
fn only_points_of_the_curve_in_standard_forms_are_keys() {
    // The field sizes: as an x they are 0 in disguise, and P-256 has a point with x = 0.
    let field_sizes = [
        (Curve::K256, hex("fffffffffffffffffffffffffffffffffffffffffffffffffffffffefffffc2f")),
        (Curve::P256, hex("ffffffff00000001000000000000000000000000ffffffffffffffffffffffff")),
    ];
    for (curve, size) in field_sizes {
        let key = Rng::new(9).secret(curve).public_key();
        let read = |bytes: &[u8]| PublicKey::from_sec1(curve, bytes).map(|_| ());
        assert_eq!(read(&[]), Err(KeyError::Length(0)));
        assert_eq!(read(&[0]), Err(KeyError::Length(1)), "the point at infinity");
        assert_eq!(read(&[0; 33]), Err(KeyError::Form(0)));
        assert_eq!(read(&[[2].as_slice(), &size].concat()), Err(KeyError::NotOnCurve));
        assert_eq!(read(&[[3].as_slice(), &size].concat()), Err(KeyError::NotOnCurve));
        let mut uncompressed = key.to_sec1_uncompressed();
        for form in (0..=255).filter(|form| *form != 4) {
            uncompressed[0] = form;
            assert_eq!(read(&uncompressed), Err(KeyError::Form(form)), "hybrid forms included");
        }
        uncompressed[0] = 4;
        for at in 1..65 {
            uncompressed[at] ^= 1;
            assert_eq!(read(&uncompressed), Err(KeyError::NotOnCurve));
            uncompressed[at] ^= 1;
        }
        assert_eq!(read(&uncompressed), Ok(()));
    }
}

#[test]
fn about_half_of_all_x_are_a_key_and_the_libraries_agree_which() {
    let mut rng = Rng::new(10);
    for curve in Curve::ALL {
        let mut keys = 0;
        for _ in 0..500 {
            let bytes = [&[2 | rng.below(2) as u8][..], &rng.bytes()].concat();
            let read = PublicKey::from_sec1(curve, &bytes).is_ok();
            assert_eq!(
                read,
                match curve {
                    Curve::K256 => k256::ecdsa::VerifyingKey::from_sec1_bytes(&bytes).is_ok(),
                    Curve::P256 => p256::ecdsa::VerifyingKey::from_sec1_bytes(&bytes).is_ok(),
                }
            );
            keys += usize::from(read);
        }
        assert!((200..300).contains(&keys), "{keys}");
    }
}

#[test]
fn secret_keys_out_of_range_are_rejected() {
    for curve in Curve::ALL {
        for bad in [[0; 32], *curve.order(), [0xff; 32]] {
            let rejected = SecretKey::from_bytes(curve, &bad).map(|_| ());
            assert_eq!(rejected, Err(KeyError::SecretRange));
        }
        assert!(SecretKey::from_bytes(curve, &plus_one(&[0; 32])).is_ok());
    }
    assert!(schnorr::SecretKey::from_bytes(&[0; 32]).is_err());
}

#[test]
fn debug_output_of_a_secret_key_shows_the_public_key_only() {
    let bytes = [0xa5; 32];
    for curve in Curve::ALL {
        let secret = SecretKey::from_bytes(curve, &bytes).unwrap();
        let shown = format!("{secret:?}");
        assert_eq!(shown, format!("SecretKey(of {})", secret.public_key().to_did_key()));
        assert!(!shown.to_lowercase().contains("a5a5") && !shown.contains("165, 165"));
    }
    let secret = schnorr::SecretKey::from_bytes(&bytes).unwrap();
    assert_eq!(format!("{secret:?}"), format!("SecretKey(of {})", secret.public_key()));
}

/// When to use lanes: as the crate decides, never, and always.
type UseLanes = fn(usize) -> bool;
const DISPATCHES: [(&str, UseLanes); 3] =
    [("dispatched", lanes::are_faster), ("library", |_| false), ("lanes", |_| true)];

/// The verdicts on `checks`, asserted to be the same for every dispatch.
fn verified(
    checks: &[SignatureCheck<'_>],
    mut cache: Option<&mut KeyCache>,
) -> Vec<SignatureVerdict> {
    let expected = verify_many(checks);
    for (name, use_lanes) in DISPATCHES {
        let mut verdicts = vec![Err(SignatureFault::Key); checks.len()];
        batch::verify_batch(checks, cache.as_deref_mut(), &mut verdicts, use_lanes);
        assert_eq!(verdicts, expected, "{name}");
    }
    expected
}

#[test]
fn a_batch_gets_the_verdicts_of_its_checks_alone() {
    let mut rng = Rng::new(11);
    for len in (0..=17).chain([100, 1_000]) {
        let triples: Vec<Triple> = (0..len).map(|_| Triple::any(&mut rng)).collect();
        let expected: Vec<SignatureVerdict> = triples.iter().map(Triple::verdict).collect();
        let parsed: Vec<SignatureCheck<'_>> = triples.iter().map(Triple::check).collect();
        let compressed: Vec<SignatureCheck<'_>> =
            triples.iter().map(Triple::compressed_check).collect();
        assert_eq!(verified(&parsed, None), expected);
        assert_eq!(verified(&compressed, None), expected);
    }
}

#[test]
fn one_bad_check_among_good_ones_is_found_at_every_index() {
    let mut rng = Rng::new(12);
    let good: Vec<Triple> = (0..17).map(|at| Triple::valid(Curve::ALL[at % 2], &mut rng)).collect();
    for bad in 0..17 {
        let mut triples = good.clone();
        triples[bad].digest[31] ^= 1;
        let checks: Vec<SignatureCheck<'_>> = triples.iter().map(Triple::check).collect();
        let mut expected = [Ok(()); 17];
        expected[bad] = Err(SignatureFault::Mismatch);
        assert_eq!(verified(&checks, None), expected);
    }
}

#[test]
fn messages_and_digests_may_be_mixed_in_a_batch() {
    let secret = Rng::new(13).secret(Curve::K256);
    let key = secret.public_key();
    let messages: Vec<Vec<u8>> = (0..20).map(|len| vec![len as u8; 10 * len]).collect();
    let signatures: Vec<[u8; 64]> = messages.iter().map(|message| secret.sign(message)).collect();
    let check = |at: usize| SignatureCheck {
        signed: match at % 3 {
            0 => SignedData::Digest(kernels::sha256::digest(&messages[at])),
            _ => SignedData::Message(&messages[at]),
        },
        signature: &signatures[at],
        key: KeyRef::Parsed(&key),
    };
    assert_eq!(verify_many(&Vec::from_iter((0..20).map(check))), [Ok(()); 20]);
}

#[test]
fn a_compressed_key_that_is_not_a_point_fails_its_own_check_only() {
    for curve in Curve::ALL {
        let good = Triple::valid(curve, &mut Rng::new(14));
        let not_a_point = CompressedKey::from_bytes(curve, &[[2].as_slice(), &[0xff; 32]].concat());
        let bad = SignatureCheck { key: KeyRef::Compressed(not_a_point.unwrap()), ..good.check() };
        for index in 0..12 {
            let mut checks = [good.compressed_check(); 12];
            checks[index] = bad;
            let mut expected = [Ok(()); 12];
            expected[index] = Err(SignatureFault::Key);
            assert_eq!(verified(&checks, None), expected);
        }
    }
}

#[test]
#[should_panic(expected = "one verdict for each signature")]
fn too_few_places_are_a_caller_bug() {
    let triple = Triple::valid(Curve::K256, &mut Rng::new(15));
    verify_many_into(&[triple.check(); 2], &mut [Ok(())]);
}

#[test]
fn small_multiples_of_the_generator_are_valid_keys() {
    // Where a ladder adds a point to itself or to its opposite.
    let mut rng = Rng::new(19);
    let mut triples = Vec::new();
    for curve in Curve::ALL {
        for small in 1..=40 {
            let mut positive = [0; 32];
            positive[31] = small;
            let mut negative = [[0; 32], positive].concat();
            negate_s(curve, &mut negative);
            for secret in [positive, negative[32..].try_into().unwrap()] {
                let secret = SecretKey::from_bytes(curve, &secret).unwrap();
                for digest in [rng.bytes(), [0; 32], [0xff; 32], *curve.order(), positive] {
                    let signature = secret.sign_digest(&digest).to_vec();
                    triples.push(Triple { digest, signature, key: secret.public_key() });
                }
            }
        }
    }
    let checks: Vec<SignatureCheck<'_>> = triples.iter().map(Triple::compressed_check).collect();
    assert_eq!(verified(&checks, None), vec![Ok(()); checks.len()]);
    let mut cache = KeyCache::new(1 << 20, [1; 16]);
    assert_eq!(verified(&checks, Some(&mut cache)), vec![Ok(()); checks.len()]);
}

#[test]
fn a_cache_changes_no_verdict_however_small() {
    let mut rng = Rng::new(16);
    let mut triples: Vec<Triple> = (0..60).map(|_| Triple::any(&mut rng)).collect();
    let again: Vec<Triple> = (0..240).map(|_| triples[rng.below(60)].clone()).collect();
    triples.extend(again);
    let checks: Vec<SignatureCheck<'_>> = triples.iter().map(Triple::compressed_check).collect();
    for capacity in [0, 1, 2, 7, 1_000] {
        let mut cache = KeyCache::new(capacity * KeyCache::ENTRY_BYTES, [1; 16]);
        for batch in [1, 16, 300] {
            for checks in checks.chunks(batch) {
                verified(checks, Some(&mut cache));
            }
            assert!(cache.len() <= capacity);
        }
    }
}

#[test]
fn only_keys_with_a_valid_signature_are_cached() {
    for curve in Curve::ALL {
        let good = Triple::valid(curve, &mut Rng::new(17));
        let mut bad = good.clone();
        bad.digest[0] ^= 1;
        let mut cache = KeyCache::new(1 << 20, [1; 16]);
        for _ in 0..3 {
            verify_many_cached(&[bad.compressed_check(); 2], &mut cache, &mut [Ok(()); 2]);
            assert!(cache.is_empty());
        }
        for _ in 0..6 {
            verify_many_cached(&[good.compressed_check(); 2], &mut cache, &mut [Ok(()); 2]);
        }
        assert_eq!(cache.len(), 1);
        let stats = cache.stats();
        assert_eq!((stats.hits + stats.misses, stats.evictions), (18, 0));
        assert!(stats.hits >= 4, "eight signatures are enough to be ready: {stats:?}");
    }
}

#[test]
fn a_key_is_ready_in_every_way_of_verifying() {
    let (mut rng, mut cache) = (Rng::new(20), KeyCache::new(1 << 20, [1; 16]));
    let triple = Triple::valid(Curve::K256, &mut rng);
    let mut bad = triple.clone();
    bad.digest[0] ^= 1;
    let checks = [&triple, &bad, &triple].map(Triple::compressed_check);
    // Long enough for tables of all sizes.
    for _ in 0..60 {
        verified(&checks, Some(&mut cache));
        verified(&checks[..1], Some(&mut cache));
        verified(&checks[1..2], Some(&mut cache));
    }
    assert_eq!(cache.len(), 1);
}

/// A BIP-340 signature with its message and key.
struct SchnorrTriple {
    message: Vec<u8>,
    signature: Vec<u8>,
    key: [u8; 32],
}

impl SchnorrTriple {
    /// A valid triple, or one damaged in a way that `rng` chooses.
    fn any(rng: &mut Rng) -> Self {
        let secret = schnorr::SecretKey::from_bytes(&rng.bytes()).unwrap();
        let message = vec![rng.next() as u8; [32, 32, 0, 100][rng.below(4)]];
        let signature = secret.sign(&message, &rng.bytes()).to_vec();
        let mut triple = Self { message, signature, key: secret.public_key().to_bytes() };
        match rng.below(7) {
            0 => triple.signature[rng.below(64)] ^= 1 << rng.below(8),
            1 => triple.message.push(0),
            2 => triple.key = rng.bytes(),
            3 => triple.signature.rotate_left(32),
            4 => triple.signature.truncate(63),
            _ => {}
        }
        triple
    }

    fn verdict(&self) -> SignatureVerdict {
        let key = XOnlyKey::from_bytes(&self.key);
        let formed = || schnorr::verify_many(&[self.check()])[0];
        key.map_or_else(|_| formed(), |key| key.verify(&self.message, &self.signature))
    }

    fn check(&self) -> schnorr::SignatureCheck<'_> {
        schnorr::SignatureCheck {
            message: &self.message,
            signature: &self.signature,
            key: schnorr::KeyRef::Bytes(&self.key),
        }
    }
}

/// The verdicts on `checks`, asserted to be the same for every dispatch, with a cache and without.
fn schnorr_verified(
    checks: &[schnorr::SignatureCheck<'_>],
    cache: &mut KeyCache,
) -> Vec<SignatureVerdict> {
    let expected = schnorr::verify_many(checks);
    for (name, use_lanes) in DISPATCHES {
        for cache in [None, Some(&mut *cache)] {
            let mut verdicts = vec![Err(SignatureFault::HighS); checks.len()];
            schnorr::verify_batch(checks, cache, &mut verdicts, use_lanes);
            assert_eq!(verdicts, expected, "{name}");
        }
    }
    expected
}

#[test]
fn a_cached_key_with_odd_y_serves_ecdsa_and_bip_340() {
    let mut cache = KeyCache::new(1 << 20, [1; 16]);
    for seed in 1..20 {
        let ecdsa = SecretKey::from_bytes(Curve::K256, &[seed; 32]).unwrap();
        let (key, signature) = (ecdsa.public_key(), ecdsa.sign(b"hello"));
        let secret = schnorr::SecretKey::from_bytes(&[seed; 32]).unwrap();
        let (x_only, schnorr_signature) = (secret.public_key(), secret.sign(b"hello", &[0; 32]));
        assert_eq!(key.to_sec1()[1..], x_only.to_bytes());
        let check = SignatureCheck {
            signed: SignedData::Message(b"hello"),
            signature: &signature,
            key: KeyRef::Parsed(&key),
        };
        let schnorr_check = schnorr::SignatureCheck {
            message: b"hello",
            signature: &schnorr_signature,
            key: schnorr::KeyRef::Parsed(&x_only),
        };
        for _ in 0..3 {
            assert_eq!(verified(&[check; 3], Some(&mut cache)), [Ok(()); 3]);
            assert_eq!(schnorr_verified(&[schnorr_check; 3], &mut cache), [Ok(()); 3]);
        }
    }
}

#[test]
fn a_schnorr_batch_gets_the_verdicts_of_its_checks_alone() {
    let mut rng = Rng::new(18);
    let (mut seen, mut cache) = (Vec::new(), KeyCache::new(1 << 20, [1; 16]));
    for len in (0..=17).chain([100, 1_000]) {
        let triples: Vec<SchnorrTriple> = (0..len).map(|_| SchnorrTriple::any(&mut rng)).collect();
        let expected: Vec<SignatureVerdict> = triples.iter().map(SchnorrTriple::verdict).collect();
        let checks: Vec<schnorr::SignatureCheck<'_>> =
            triples.iter().map(SchnorrTriple::check).collect();
        assert_eq!(schnorr_verified(&checks, &mut cache), expected);
        let keys: Vec<_> = triples.iter().map(|triple| XOnlyKey::from_bytes(&triple.key)).collect();
        let parsed: Vec<schnorr::SignatureCheck<'_>> = checks
            .iter()
            .zip(&keys)
            .map(|(check, key)| match key {
                Ok(key) => schnorr::SignatureCheck { key: schnorr::KeyRef::Parsed(key), ..*check },
                Err(_) => *check,
            })
            .collect();
        assert_eq!(schnorr_verified(&parsed, &mut cache), expected);
        seen.extend(expected);
    }
    let length = SignatureFault::Length(63);
    for fault in [SignatureFault::Mismatch, SignatureFault::Key, length] {
        assert!(seen.contains(&Err(fault)), "{fault:?}");
    }
}

#[test]
fn a_schnorr_batch_with_a_cache_gets_the_same_verdicts() {
    let secret = schnorr::SecretKey::from_bytes(&[7; 32]).unwrap();
    let (key, signature) = (secret.public_key(), secret.sign(b"hello", &[0; 32]));
    let key = schnorr::KeyRef::Parsed(&key);
    let checks = [b"hello", b"other"].map(|message| schnorr::SignatureCheck {
        message: &message[..],
        signature: &signature,
        key,
    });
    let mut cache = KeyCache::new(1 << 20, [1; 16]);
    for _ in 0..3 {
        let mut verdicts = [Err(SignatureFault::HighS); 2];
        schnorr::verify_many_cached(&checks, &mut cache, &mut verdicts);
        assert_eq!(verdicts, [Ok(()), Err(SignatureFault::Mismatch)]);
    }
}

#[test]
fn a_schnorr_signature_out_of_range_is_reported_as_such() {
    let secret = schnorr::SecretKey::from_bytes(&[7; 32]).unwrap();
    let (key, good) = (secret.public_key(), secret.sign(b"hello", &[0; 32]));
    let field_size = hex("fffffffffffffffffffffffffffffffffffffffffffffffffffffffefffffc2f");
    for bad in [field_size, [0xff; 32]] {
        let signature = [&bad, &good[32..]].concat();
        assert_eq!(key.verify(b"hello", &signature), Err(SignatureFault::RRange));
    }
    for bad in [*Curve::K256.order(), [0xff; 32]] {
        let signature = [&good[..32], &bad].concat();
        assert_eq!(key.verify(b"hello", &signature), Err(SignatureFault::SRange));
    }
    for zeroed in [0..32, 32..64] {
        let mut signature = good;
        signature[zeroed].fill(0);
        assert_eq!(key.verify(b"hello", &signature), Err(SignatureFault::Mismatch));
    }
}
