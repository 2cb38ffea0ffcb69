//! SHA-256 (FIPS 180-4) of one message and of many.
//!
//! A single message runs at the speed of one dependency chain. [`digest_many`] spreads many messages
//! over lanes and starts the next message in a lane as soon as the last one ends, so that a long message
//! among short ones does not delay the others.
//!
//! ```
//! let digests = wireproof::kernels::sha256::digest_many(&[b"abc".as_slice(), b""]);
//! assert_eq!(digests[0], wireproof::kernels::sha256::digest(b"abc"));
//! ```

mod arm_sha2;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_feature = "simd128", test))]
#[cfg_attr(target_arch = "aarch64", allow(dead_code, reason = "one stream needs no scheduler"))]
mod lanes;
mod portable;
#[cfg(any(target_feature = "simd128", test))]
mod quad;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod x86_avx2;
#[cfg(target_arch = "x86_64")]
mod x86_avx512;
#[cfg(target_arch = "x86_64")]
mod x86_sha_ni;

#[cfg(target_arch = "aarch64")]
use crate::cpu::Level;

/// The 32 bytes of a SHA-256 hash.
pub type Digest = [u8; 32];

/// Returns the SHA-256 of `message`, by this machine's fastest back end for one message.
pub fn digest(message: &[u8]) -> Digest {
    let mut digests = [[0; 32]];
    Backend::for_batch(1).digest_into(&[message], &mut digests);
    digests[0]
}

/// Returns the SHA-256 of the concatenation of `parts`.
///
/// It concatenates them: a copy of a few hundred bytes costs less than to fold blocks that begin in one
/// part and end in another (118 bytes in three parts on Zen 5: 111 ns, against 132 ns).
///
/// ```
/// use wireproof::kernels::sha256;
/// assert_eq!(sha256::digest_parts(&[b"ab", b"", b"c"]), sha256::digest(b"abc"));
/// ```
pub fn digest_parts(parts: &[&[u8]]) -> Digest {
    let len = parts.iter().map(|part| part.len()).sum();
    let mut short = [0; 512];
    let Some(message) = short.get_mut(..len) else { return digest(&parts.concat()) };
    let mut rest = &mut message[..];
    for part in parts {
        let (target, tail) = rest.split_at_mut(part.len());
        target.copy_from_slice(part);
        rest = tail;
    }
    digest(message)
}

/// Returns the SHA-256 of every message, in order.
pub fn digest_many(messages: &[&[u8]]) -> Vec<Digest> {
    let mut digests = vec![[0; 32]; messages.len()];
    digest_many_into(messages, &mut digests);
    digests
}

/// Writes the SHA-256 of every message to the digest of the same index, without allocating.
///
/// # Panics
/// If the two slices differ in length.
pub fn digest_many_into(messages: &[&[u8]], digests: &mut [Digest]) {
    Backend::for_batch(messages.len()).digest_into(messages, digests);
}

/// An implementation of SHA-256. All give the same result; [`Backend::Portable`] defines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// Plain Rust, one message at a time.
    Portable,
    /// x86 SHA extensions, one message at a time.
    ShaNi,
    /// x86 SHA extensions, four messages interleaved to hide the latency of one.
    ShaNiInterleaved,
    /// AVX2, eight messages in the lanes of a vector.
    Avx2,
    /// AVX-512, sixteen messages in the lanes of a vector.
    Avx512,
    /// ARMv8 SHA-2 instructions, one message at a time.
    ArmSha2,
    /// Four messages in vectors of 128 bits of WebAssembly.
    Quad,
}

impl Backend {
    /// Every back end, the portable one first.
    pub const ALL: [Self; 7] = [
        Self::Portable,
        Self::Quad,
        Self::Avx2,
        Self::ShaNi,
        Self::ShaNiInterleaved,
        Self::Avx512,
        Self::ArmSha2,
    ];

    /// The back ends that this machine can run, the portable one first.
    pub fn available() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|backend| backend.is_available())
    }

    /// The name in benchmark rows.
    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Avx2 => "avx2-x8",
            Self::ShaNi => "sha-ni",
            Self::ShaNiInterleaved => "sha-ni-x4",
            Self::Avx512 => "avx512-x16",
            Self::ArmSha2 => "arm-sha2",
            Self::Quad => "simd128-x4",
        }
    }

    /// Whether this machine has the instructions. Costs one atomic load.
    pub fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(any(target_feature = "simd128", test))]
            Self::Quad => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => x86_avx2::is_available(),
            #[cfg(target_arch = "x86_64")]
            Self::ShaNi | Self::ShaNiInterleaved => x86_sha_ni::is_available(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => x86_avx512::is_available(),
            #[cfg(target_arch = "aarch64")]
            Self::ArmSha2 => {
                Level::Neon.is_allowed() && std::arch::is_aarch64_feature_detected!("sha2")
            }
            #[allow(unreachable_patterns, reason = "complete on no architecture alone")]
            _ => false,
        }
    }

    /// The fastest back end here for a batch of `count` messages.
    pub fn for_batch(count: usize) -> Self {
        let ranked: &[Self] = match count {
            0 | 1 => &[Self::ShaNi, Self::ArmSha2],
            2..EIGHT_LANES_PAY_FROM => &[Self::ShaNiInterleaved, Self::ArmSha2, WASM],
            EIGHT_LANES_PAY_FROM..LANES_PAY_FROM => {
                &[Self::ShaNiInterleaved, Self::ArmSha2, Self::Avx2, WASM]
            }
            _ => &[Self::Avx512, Self::ShaNiInterleaved, Self::ArmSha2, Self::Avx2, WASM],
        };
        ranked.iter().copied().find(|b| b.is_available()).unwrap_or(Self::Portable)
    }

    /// Writes the SHA-256 of every message to the digest of the same index, by this back end.
    ///
    /// # Panics
    /// If the two slices differ in length, or the back end is not available on this machine.
    pub fn digest_into(self, messages: &[&[u8]], digests: &mut [Digest]) {
        assert_eq!(messages.len(), digests.len(), "one digest for each message");
        assert!(self.is_available(), "{} is not available on this machine", self.name());
        match self {
            Self::Portable => one_by_one(messages, digests, portable::digest),
            #[cfg(any(target_feature = "simd128", test))]
            Self::Quad => quad::digest_into(messages, digests),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => lanes::run::<8, x86_avx2::Lanes>(messages, digests),
            #[cfg(target_arch = "x86_64")]
            Self::ShaNi => one_by_one(messages, digests, lanes::digest::<x86_sha_ni::Streams<1>>),
            #[cfg(target_arch = "x86_64")]
            Self::ShaNiInterleaved => lanes::run::<4, x86_sha_ni::Streams<4>>(messages, digests),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 if messages.len() < TWO_VECTORS_PAY_FROM => {
                let done = x86_avx512::digest_short::<1>(messages, digests);
                lanes::run::<16, x86_avx512::Lanes<1>>(&messages[done..], &mut digests[done..]);
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                let done = x86_avx512::digest_short::<2>(messages, digests);
                lanes::run::<32, x86_avx512::Lanes<2>>(&messages[done..], &mut digests[done..]);
            }
            #[cfg(target_arch = "aarch64")]
            Self::ArmSha2 => one_by_one(messages, digests, lanes::digest::<arm_sha2::Stream>),
            #[allow(unreachable_patterns, reason = "complete on no architecture alone")]
            _ => unreachable!("an unavailable back end was rejected above"),
        }
    }
}

fn one_by_one(messages: &[&[u8]], digests: &mut [Digest], digest: fn(&[u8]) -> Digest) {
    for (message, out) in messages.iter().zip(digests) {
        *out = digest(message);
    }
}

/// The back end for many messages where the compiler's vectors are all there is.
const WASM: Backend = if cfg!(target_family = "wasm") { Backend::Quad } else { Backend::Portable };

/// From this many messages on, eight lanes of AVX2 are faster than the portable form.
const EIGHT_LANES_PAY_FROM: usize = 4;

/// From this many messages on, sixteen lanes are no slower than four interleaved streams. On Zen 5,
/// lengths uniform in 0–900 bytes: 10 messages, 1.9 against 2.2 GB/s; 16, 2.4 against 2.3; 32, 3.4
/// against 2.4.
const LANES_PAY_FROM: usize = 16;

/// From this many messages on, twice sixteen lanes are faster than sixteen.
#[cfg(target_arch = "x86_64")]
const TWO_VECTORS_PAY_FROM: usize = 48;

/// The state before the first block (FIPS 180-4 §5.3.3).
const INITIAL: [u32; 8] = [
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
];

/// The round constants (FIPS 180-4 §4.2.2).
const ROUND: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
];
