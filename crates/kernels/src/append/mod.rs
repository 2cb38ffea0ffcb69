//! Short pieces appended to a byte vector without a call per piece.
//!
//! [`append`] chooses the back end once for all [`Pieces`], whose code is compiled once per back end.
//! With AVX-512, a piece of up to 64 bytes is loaded and stored by one masked instruction, and no
//! branch depends on its length. Fewer instructions a piece leave more of them in flight, so cache
//! misses overlap: that is most of the gain.

#[cfg(target_arch = "x86_64")]
mod x86_avx512;

use std::mem::{self, MaybeUninit};

use crate::{hex, json};

/// Content that is appended piece by piece.
///
/// ```
/// use wireproof::kernels::append::{Appender, Pieces, append};
///
/// struct Named<'a>(&'a str, [u8; 2]);
///
/// impl Pieces for Named<'_> {
///     #[inline(always)]
///     fn append_to(self, out: &mut Appender) {
///         out.bytes(self.0.as_bytes());
///         out.byte(b'=');
///         out.hex(&self.1);
///     }
/// }
///
/// let mut bytes = Vec::new();
/// append(Named("port", [0x1f, 0x90]), &mut bytes);
/// assert_eq!(bytes, b"port=1f90");
/// ```
pub trait Pieces {
    /// Appends all pieces to `out`.
    ///
    /// Mark the implementation `#[inline(always)]`, and everything that it calls with `out`: code that
    /// is not inlined is correct but slow.
    fn append_to(self, out: &mut Appender);
}

/// Appends `pieces` to `out`.
///
/// # Panics
/// If `pieces` does; `out` is then empty, because the appender owns the vector while it runs.
#[inline]
pub fn append(pieces: impl Pieces, out: &mut Vec<u8>) {
    #[cfg(target_arch = "x86_64")]
    if x86_avx512::is_available() {
        // SAFETY: the line above saw all features on this CPU.
        return unsafe { append_wide(pieces, out) };
    }
    append_portable(pieces, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512bw,bmi2")]
fn append_wide(pieces: impl Pieces, out: &mut Vec<u8>) {
    append_with(pieces, true, out);
}

fn append_portable(pieces: impl Pieces, out: &mut Vec<u8>) {
    append_with(pieces, false, out);
}

#[inline(always)]
fn append_with(pieces: impl Pieces, is_wide: bool, out: &mut Vec<u8>) {
    let mut appender = Appender { vec: mem::take(out), is_wide };
    pieces.append_to(&mut appender);
    *out = appender.vec;
}

/// A growing byte vector.
///
/// All its fields stay in registers: no function that takes one of them by reference is left uninlined.
#[derive(Debug)]
pub struct Appender {
    vec: Vec<u8>,
    // True only where this CPU has all features of the wide back end.
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "always false there"))]
    is_wide: bool,
}

impl Appender {
    /// Appends a byte.
    #[inline(always)]
    pub fn byte(&mut self, byte: u8) {
        self.array(&[byte]);
    }

    /// Appends bytes whose number is known at compile time.
    #[inline(always)]
    pub fn array<const N: usize>(&mut self, bytes: &[u8; N]) {
        *self.spare::<N>() = bytes.map(MaybeUninit::new);
        // SAFETY: the line above wrote `N` bytes past the end.
        unsafe { self.grow_over(N) };
    }

    /// Appends bytes.
    #[inline(always)]
    pub fn bytes(&mut self, bytes: &[u8]) {
        #[cfg(target_arch = "x86_64")]
        if self.is_wide && bytes.len() <= STEP {
            // SAFETY: `is_wide` says that this CPU has all features.
            unsafe { x86_avx512::copy(bytes, self.spare()) };
            // SAFETY: the line above wrote `bytes.len()` bytes past the end.
            return unsafe { self.grow_over(bytes.len()) };
        }
        self.with_vec(|vec| vec.extend_from_slice(bytes));
    }

    /// Appends two lower-case hexadecimal digits per byte.
    #[inline(always)]
    pub fn hex(&mut self, bytes: &[u8]) {
        #[cfg(target_arch = "x86_64")]
        if self.is_wide {
            for step in bytes.chunks(STEP / 2) {
                // SAFETY: `is_wide` says that this CPU has all features.
                unsafe { x86_avx512::write_hex(step, self.spare()) };
                // SAFETY: the line above wrote two digits for each byte past the end.
                unsafe { self.grow_over(2 * step.len()) };
            }
            return;
        }
        self.with_vec(|vec| hex::encode_into(bytes, vec));
    }

    /// Appends `text` in quotes if JSON needs no escape for it (no `"`, no `\`, no byte below 0x20).
    /// Otherwise returns `false` and appends nothing.
    #[inline(always)]
    pub fn quoted(&mut self, text: &[u8]) -> bool {
        #[cfg(target_arch = "x86_64")]
        if self.is_wide && text.len() <= STEP {
            // SAFETY: `is_wide` says that this CPU has all features.
            let is_plain = unsafe { x86_avx512::write_quoted(text, self.spare()) };
            if is_plain {
                // SAFETY: the call above wrote the text and two quotes past the end.
                unsafe { self.grow_over(text.len() + 2) };
            }
            return is_plain;
        }
        self.with_vec(|vec| quote_into(text, vec))
    }

    /// Appends by `write`, which gets the vector itself: for long or rare pieces.
    #[inline(always)]
    pub fn with_vec<T>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let mut vec = mem::take(&mut self.vec);
        let result = write(&mut vec);
        self.vec = vec;
        result
    }

    /// Reserves capacity for at least `additional` more bytes.
    #[inline(always)]
    pub fn reserve(&mut self, additional: usize) {
        if self.vec.capacity() - self.vec.len() < additional {
            self.vec = reserved(mem::take(&mut self.vec), additional);
        }
    }

    /// The first `N` bytes of spare capacity.
    #[inline(always)]
    fn spare<const N: usize>(&mut self) -> &mut [MaybeUninit<u8>; N] {
        self.reserve(N);
        self.vec.spare_capacity_mut().first_chunk_mut().expect("the line above reserved it")
    }

    /// # Safety
    /// The first `len` bytes past the end must have been written, within the capacity.
    #[inline(always)]
    unsafe fn grow_over(&mut self, len: usize) {
        let len = self.vec.len() + len;
        // SAFETY: the caller's contract.
        unsafe { self.vec.set_len(len) };
    }
}

/// [`Appender::quoted`] on a vector: the definition.
fn quote_into(text: &[u8], out: &mut Vec<u8>) -> bool {
    let start = out.len();
    out.push(b'"');
    if json::append_plain(text, out) < text.len() {
        out.truncate(start);
        return false;
    }
    out.push(b'"');
    true
}

#[cold]
fn reserved(mut vec: Vec<u8>, additional: usize) -> Vec<u8> {
    vec.reserve(additional);
    vec
}

/// Bytes that the wide back end handles at once.
#[cfg(target_arch = "x86_64")]
const STEP: usize = 64;

#[cfg(test)]
mod tests;

/// The back end other than the portable one, if it is used.
pub(crate) fn fast_back_end() -> Option<&'static str> {
    #[cfg(target_arch = "x86_64")]
    if x86_avx512::is_available() {
        return Some("avx512");
    }
    None
}
