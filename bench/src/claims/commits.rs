//! Signed commits of simulated accounts, and forms of them that break the rule of one check each.

use kernels::hex;
use simnet::keys::{Curve, POINT_LEN, with_high_s};
use simnet::signed_commits::{self, CommitEntry};

/// A signed commit and the key to verify it with.
#[derive(Clone, Debug)]
pub(super) struct Commit {
    curve: Curve,
    key: [u8; POINT_LEN],
    bytes: Vec<u8>,
}

impl Commit {
    fn new(curve: Curve, key: &str, bytes: &str) -> Self {
        let key = unhex(key).try_into().expect("a compressed point");
        Self { curve, key, bytes: unhex(bytes) }
    }

    /// Valid commits, one per curve.
    pub(super) fn good() -> [Self; 2] {
        [
            Self::new(Curve::K256, K256_KEY, K256_COMMIT),
            Self::new(Curve::P256, P256_KEY, P256_COMMIT),
        ]
    }

    /// A valid commit of the same account as the first of [`Self::good`], with an entry that the protocol does not know.
    pub(super) fn extended() -> Self {
        Self::new(Curve::K256, K256_KEY, EXTENDED_COMMIT)
    }

    /// The same with n − s instead of s, which a lenient verifier accepts.
    pub(super) fn with_high_s(mut self) -> Self {
        let at = self.position(b"\x63sig\x58\x40") + 6;
        let signature: [u8; 64] = self.bytes[at..at + 64].try_into().expect("64 bytes");
        self.bytes[at..at + 64].copy_from_slice(&with_high_s(self.curve, &signature));
        self
    }

    /// Forms that are not canonical: an integer in two bytes, a byte after the end, keys out of order, a key twice, a map of
    /// indefinite length, text that is not UTF-8.
    pub(super) fn malformed() -> [Self; 6] {
        let [good, _] = Self::good();
        let (rev, sig) = (good.position(b"\x63rev"), good.position(b"\x63sig"));
        let version = good.position(b"\x67version");
        let bytes = good.bytes.as_slice();
        let (map, last) = (bytes[0], bytes.len() - 1);
        let (did, from_sig) = (&bytes[1..rev], &bytes[sig..]);
        let rev = &bytes[rev..sig];
        let not_utf8 = [&did[..did.len() - 1], &[0xff]].concat();
        [
            [&bytes[..last], &[0x18, 3]].concat(),
            [bytes, &[0]].concat(),
            [&[map], rev, did, from_sig].concat(),
            [&[map + 1], &bytes[1..version], b"\x64prev\xf6", &bytes[version..]].concat(),
            [&[0xbf], &bytes[1..], &[0xff]].concat(),
            [&[map], &not_utf8[..], rev, from_sig].concat(),
        ]
        .map(|bytes| Self { bytes, ..good.clone() })
    }

    /// A corpus of this commit alone.
    pub(super) fn corpus(&self) -> Vec<u8> {
        let entry = CommitEntry { curve: self.curve, commit: &self.bytes, key: &self.key };
        signed_commits::write([entry])
    }

    fn position(&self, part: &[u8]) -> usize {
        self.bytes.windows(part.len()).position(|window| window == part).expect("a valid commit")
    }
}

fn unhex(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    assert!(hex::decode_into(text.as_bytes(), &mut bytes), "hexadecimal");
    bytes
}

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

/// A commit of the same account as [`K256_COMMIT`], with an entry that the protocol does not know.
const EXTENDED_COMMIT: &str = "\
    a76364696478206469643a706c633a6562667678766571737468617a343634326f6c736c766c77637265766d\
    336d706b376a716968366f327363736967584029c4b5bc5703464619cd0f2fe43395369e350c8c8ca6a951e1\
    6dbb8c610ff45f3ef85d9fe02c2d7b565748734202e023e341417de9c8776da7e309b2fb494c746464617461\
    d82a58250001711220fc80e57ea87d66cec461ea8c0268bbc18cb03290d661103aba5fb434cef898b2647072\
    6576f6656578747261637965736776657273696f6e03";
