//! The instruction sets that kernels may use, and the back end of every kernel here.
//!
//! Every kernel takes the fastest back end that the processor has. [`limit_to`] keeps a process to less, for tests and
//! benchmarks; results do not depend on it.
//!
//! ```
//! use wireproof::kernels::cpu::{self, Level};
//!
//! assert!(Level::Portable.is_available());
//! assert_eq!("avx512".parse(), Ok(Level::Avx512));
//! for kernel in cpu::kernels() {
//!     println!("{}: {}", kernel.name, kernel.in_use);
//! }
//! ```

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::{append, hex, json, secp256k1, sha256, utf8};

/// Instruction sets; every set includes the earlier ones of its architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Plain Rust.
    Portable,
    /// ARMv8: Advanced SIMD and the SHA-2 instructions.
    Neon,
    /// x86-64: SSE 4.1, AVX2, FMA and the SHA extensions, as far as the processor has them.
    Avx2,
    /// x86-64: AVX-512 F, BW and IFMA, as far as the processor has them.
    Avx512,
}

impl Level {
    /// Every level, in ascending order.
    pub const ALL: [Self; 4] = [Self::Portable, Self::Neon, Self::Avx2, Self::Avx512];

    /// The name in `WIREPROOF_BACKEND`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Neon => "neon",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }

    /// Whether the processor has the instructions that name the level.
    pub fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
            Self::Neon => cfg!(target_arch = "aarch64"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => is_x86_feature_detected!("avx512f"),
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx2 | Self::Avx512 => false,
        }
    }

    /// Whether kernels may use the instructions of this level.
    #[inline]
    pub(crate) fn is_allowed(self) -> bool {
        self as u8 <= LIMIT.load(Ordering::Relaxed)
    }
}

/// The highest level that kernels may use.
static LIMIT: AtomicU8 = AtomicU8::new(u8::MAX);

/// Keeps the kernels of this process to back ends of at most this level. Call it before the first use of a kernel:
/// a back end that is at work finishes.
///
/// # Errors
/// If the processor does not have the level.
pub fn limit_to(level: Level) -> Result<(), LevelError> {
    if !level.is_available() {
        return Err(LevelError::NotHere(level));
    }
    LIMIT.store(level as u8, Ordering::Relaxed);
    Ok(())
}

/// A level that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LevelError {
    /// The name is of no level.
    Unknown(String),
    /// The processor does not have it.
    NotHere(Level),
}

impl fmt::Display for LevelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => {
                let names = Level::ALL.map(Level::name).join(", ");
                write!(f, "there are no back ends named {name:?}; the names are {names}")
            }
            Self::NotHere(level) => write!(f, "this processor does not have {}", level.name()),
        }
    }
}

impl std::error::Error for LevelError {}

impl FromStr for Level {
    type Err = LevelError;

    fn from_str(name: &str) -> Result<Self, LevelError> {
        let named = Self::ALL.into_iter().find(|level| level.name() == name);
        named.ok_or_else(|| LevelError::Unknown(name.to_owned()))
    }
}

/// A kernel and its back ends.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Kernel {
    /// The work.
    pub name: &'static str,
    /// The back end that is used.
    pub in_use: &'static str,
    /// The back ends that this processor has within the limit, the portable one first.
    pub available: Vec<&'static str>,
}

/// The back ends in use, for kernels that have more than one.
pub fn kernels() -> Vec<Kernel> {
    let sha256: Vec<_> = sha256::Backend::available().map(sha256::Backend::name).collect();
    let sha256_of = |name, count| Kernel {
        name,
        in_use: sha256::Backend::for_batch(count).name(),
        available: sha256.clone(),
    };
    let lanes = secp256k1::Backend::ALL.into_iter().filter(|backend| backend.is_available());
    vec![
        sha256_of("sha256, one message", 1),
        sha256_of("sha256, many messages", MANY),
        Kernel {
            name: "secp256k1 and p256, many signatures",
            in_use: secp256k1::Backend::best().name(),
            available: lanes.map(secp256k1::Backend::name).collect(),
        },
        Kernel::of_two("utf8", utf8::fast_back_end()),
        Kernel::of_two("json", json::fast_back_end()),
        Kernel::of_two("hex", hex::fast_back_end()),
        Kernel::of_two("append", append::fast_back_end()),
    ]
}

impl Kernel {
    /// A kernel with a portable back end and at most one other here.
    fn of_two(name: &'static str, fast: Option<&'static str>) -> Self {
        let portable = Level::Portable.name();
        let available = [portable].into_iter().chain(fast).collect();
        Self { name, in_use: fast.unwrap_or(portable), available }
    }
}

/// A number of messages that fills all lanes.
const MANY: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_names_and_other_names_are_refused() {
        for level in Level::ALL {
            assert_eq!(level.name().parse(), Ok(level));
        }
        let error = "sse2".parse::<Level>().expect_err("no level");
        assert!(error.to_string().contains("portable, neon, avx2, avx512"), "{error}");
    }

    #[test]
    fn a_level_of_another_architecture_is_refused() {
        let foreign = if cfg!(target_arch = "aarch64") { Level::Avx2 } else { Level::Neon };
        assert_eq!(limit_to(foreign), Err(LevelError::NotHere(foreign)));
        assert!(Level::Avx512.is_allowed());
    }

    #[test]
    fn every_kernel_uses_one_of_its_back_ends() {
        for kernel in kernels() {
            assert_eq!(kernel.available[0], "portable", "{kernel:?}");
            assert!(kernel.available.contains(&kernel.in_use), "{kernel:?}");
        }
    }
}
