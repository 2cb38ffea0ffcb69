//! Tests of a peer's claimed checks with commits that break one rule each.
//!
//! [`assert_claims`] is the test of every runner, so that `describe` cannot drift from what the libraries do. The signed
//! samples are of simulated accounts.

use super::{Curve, Peer, PublicKey, Signed};
use crate::{BoxError, catch_panic};

/// Compares the claims of every variant with what it rejects.
///
/// # Panics
///
/// When a claim is false, when a check that is made is not claimed, or when a valid commit is rejected.
pub fn assert_claims<P: Peer>() {
    let good = [Sample::k256(), Sample::p256()];
    for variant in P::VARIANTS {
        let verdict = |sample: &Sample| sample.verdict::<P>(variant.name);
        assert!(good.iter().all(|sample| matches!(verdict(sample), Ok(true))), "{}", variant.name);
        let claims = |check| variant.checks.contains(&check);
        let low_s = good.iter().all(|sample| !matches!(verdict(&sample.with_high_s()), Ok(true)));
        assert_eq!(low_s, claims("low-s"), "{}: low-s", variant.name);
        if variant.name == "full" {
            let rejected: Vec<_> =
                malformed().iter().map(|sample| verdict(sample).is_err()).collect();
            println!("malformed commits rejected: {rejected:?}");
            let strict = rejected.iter().all(|is_rejected| *is_rejected);
            assert_eq!(strict, claims("strict-cbor"), "strict-cbor: {rejected:?}");
            let extended = matches!(verdict(&Sample::extended()), Ok(true));
            println!("a commit with another entry accepted: {extended}");
            assert!(extended || !claims("raw-bytes"), "raw-bytes");
        } else {
            assert!(!claims("strict-cbor") && !claims("raw-bytes"), "nothing is decoded there");
        }
    }
}

/// A commit and the key to verify it with.
#[derive(Clone)]
struct Sample {
    commit: Vec<u8>,
    key: PublicKey,
}

impl Sample {
    fn new(curve: Curve, point: &str, commit: &str) -> Self {
        let point = unhex(point).try_into().expect("33 bytes");
        Sample { commit: unhex(commit), key: PublicKey { curve, point } }
    }

    fn k256() -> Self {
        Sample::new(Curve::K256, K256_KEY, K256_COMMIT)
    }

    fn p256() -> Self {
        Sample::new(Curve::P256, P256_KEY, P256_COMMIT)
    }

    fn extended() -> Self {
        Sample::new(Curve::K256, K256_KEY, EXTENDED_COMMIT)
    }

    fn verdict<P: Peer>(&self, variant: &str) -> Result<bool, BoxError> {
        catch_panic(|| match variant {
            "full" => P::verify_commit(&self.commit, &self.key),
            _ => {
                let signed = Signed::split(&self.commit)?;
                P::verify(&signed.message, &signed.signature, &P::parse_key(&self.key)?)
            }
        })
    }

    /// The sample with n − s instead of s, which a lenient verifier accepts.
    fn with_high_s(&self) -> Self {
        let signature = Signed::split(&self.commit).expect("a good commit").signature;
        let at =
            self.commit.windows(64).position(|window| window == signature).expect("it is there");
        let order = unhex(match self.key.curve {
            Curve::K256 => K256_ORDER,
            Curve::P256 => P256_ORDER,
        });
        let mut high = self.clone();
        let mut borrow = 0;
        for (digit, s) in order.iter().zip(&mut high.commit[at + 32..at + 64]).rev() {
            let difference = i16::from(*digit) - i16::from(*s) - borrow;
            borrow = i16::from(difference < 0);
            *s = difference as u8;
        }
        high
    }
}

/// Commits that are not canonical: an integer in two bytes, a byte after the end, keys out of order,
/// a key twice, a map of indefinite length, text that is not UTF-8.
fn malformed() -> [Sample; 6] {
    let good = Sample::k256();
    let at = |key: &[u8]| good.commit.windows(key.len()).position(|w| w == key).expect("a key");
    let (rev, sig, version) = (at(b"\x63rev"), at(b"\x63sig"), at(b"\x67version"));
    let [map, rest @ ..] = good.commit.as_slice() else { unreachable!("a commit is not empty") };
    let all_but_last = &good.commit[..good.commit.len() - 1];
    let (did, rev, from_sig) = (&good.commit[1..rev], &good.commit[rev..sig], &good.commit[sig..]);
    let not_utf8 = [&did[..did.len() - 1], &[0xff]].concat();
    let (start, end) = good.commit[1..].split_at(version - 1);
    [
        [all_but_last, &[0x18, 3]].concat(),
        [good.commit.as_slice(), &[0]].concat(),
        [&[*map], rev, did, from_sig].concat(),
        [&[map + 1], start, b"\x64prev\xf6", end].concat(),
        [&[0xbf], rest, &[0xff]].concat(),
        [&[*map], not_utf8.as_slice(), rev, from_sig].concat(),
    ]
    .map(|commit| Sample { commit, key: good.key.clone() })
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2).map(|pair| str::from_utf8(pair).expect("ASCII"));
    digits.map(|pair| u8::from_str_radix(pair, 16).expect("hexadecimal")).collect()
}

const K256_ORDER: &str = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141";
const P256_ORDER: &str = "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551";

const K256_KEY: &str = "02f72d90de1a775b47738176c4a9e3bb3d2cdb5b6f036c83fe91dd3d810823e29c";
const K256_COMMIT: &str = "\
    a66364696478206469643a706c633a6562667678766571737468617a343634326f6c736c766c77637265766d\
    336d706b376a716968366f327363736967584094e33849d2831a70f4a864f88330e65a1ba44dfae0445b443f\
    56ad55920ffe7f52a466cb2482140f36ec26e4bb5d768168c9f60bb401d8d10393221c1b874aba6464617461\
    d82a58250001711220fc80e57ea87d66cec461ea8c0268bbc18cb03290d661103aba5fb434cef898b2647072\
    6576f66776657273696f6e03";
const P256_KEY: &str = "035bd0ed0b39c2f07ec096508328ff6b0af3bc68ff2f591f00f0cb7ff723a31712";
const P256_COMMIT: &str = "\
    a66364696478206469643a706c633a6978786d343464753267786f75656f71347065706f376937637265766d\
    336d706b376a716974796e327a6373696758401a31d2e7e8e85a760be5227dfcbcf03542b283f524a6fdbb4c\
    265b7d8dc186586f544f86c0dd450a1c65ed489e7ec686bd9eef8869d5e8cce76dcb8d5e7007a46464617461\
    d82a5825000171122008c80d206fa804f34edc287d1d3f9f328500be294a9b4f6f68f5917d2a8cc7c4647072\
    6576f66776657273696f6e03";

/// Of the same account as [`K256_COMMIT`], with an entry that the protocol does not know.
const EXTENDED_COMMIT: &str = "\
    a76364696478206469643a706c633a6562667678766571737468617a343634326f6c736c766c77637265766d\
    336d706b376a716968366f327363736967584029c4b5bc5703464619cd0f2fe43395369e350c8c8ca6a951e1\
    6dbb8c610ff45f3ef85d9fe02c2d7b565748734202e023e341417de9c8776da7e309b2fb494c746464617461\
    d82a58250001711220fc80e57ea87d66cec461ea8c0268bbc18cb03290d661103aba5fb434cef898b2647072\
    6576f6656578747261637965736776657273696f6e03";
