//! How are many short pieces appended to a list of bytes, without a call for each of them?
//!
//! [`append`] chooses the back end once for all pieces of a [`Job`], whose code is compiled for each
//! back end. Where the machine has registers of 64 bytes, a piece of up to as many is loaded and stored in
//! one step, by a mask, and no branch asks for its length. With fewer instructions a piece, more
//! of them are on their way at once, so that what is not in the cache is waited for together: that is
//! most of the gain.

mod portable;
#[cfg(target_arch = "x86_64")]
mod x86_avx512;

use std::mem::{self, MaybeUninit};

use crate::hex;

/// What is appended, piece by piece.
///
/// ```
/// use wireproof_kernels::append::{Appender, Job, append};
///
/// struct Named<'a>(&'a str, [u8; 2]);
///
/// impl Job for Named<'_> {
///     #[inline(always)]
///     fn run(self, out: &mut Appender) {
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
pub trait Job {
    /// Appends all pieces to `out`.
    ///
    /// To be marked `#[inline(always)]`, as all that it calls with `out`: what is not inlined is
    /// right and slow.
    fn run(self, out: &mut Appender);
}

/// Appends what `job` appends.
///
/// # Panics
/// If `job` does; `out` is empty then, since the list is the job's while it runs.
#[inline]
pub fn append(job: impl Job, out: &mut Vec<u8>) {
    #[cfg(target_arch = "x86_64")]
    if x86_avx512::is_available() {
        // SAFETY: the line above saw all features on this CPU.
        return unsafe { append_wide(job, out) };
    }
    append_portable(job, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512bw,bmi2")]
fn append_wide(job: impl Job, out: &mut Vec<u8>) {
    run(job, true, out);
}

fn append_portable(job: impl Job, out: &mut Vec<u8>) {
    run(job, false, out);
}

#[inline(always)]
fn run(job: impl Job, is_wide: bool, out: &mut Vec<u8>) {
    let mut appender = Appender { list: mem::take(out), is_wide };
    job.run(&mut appender);
    *out = appender.list;
}

/// A list of bytes that grows.
///
/// All its parts stay in registers: what is not inlined takes none of them by reference.
#[derive(Debug)]
pub struct Appender {
    list: Vec<u8>,
    // Only where this CPU has what the wide back end needs.
    is_wide: bool,
}

impl Appender {
    /// Appends a byte.
    #[inline(always)]
    pub fn byte(&mut self, byte: u8) {
        self.array(&[byte]);
    }

    /// Appends bytes whose number is known when this is compiled.
    #[inline(always)]
    pub fn array<const N: usize>(&mut self, bytes: &[u8; N]) {
        self.room::<N>().write_copy_of_slice(bytes);
        // SAFETY: the line above wrote as many bytes behind the list.
        unsafe { self.grow_over(N) };
    }

    /// Appends bytes.
    #[inline(always)]
    pub fn bytes(&mut self, bytes: &[u8]) {
        #[cfg(target_arch = "x86_64")]
        if self.is_wide && bytes.len() <= STEP {
            // SAFETY: `is_wide` says that this CPU has all features.
            unsafe { x86_avx512::copy(bytes, self.room()) };
            // SAFETY: the line above wrote as many bytes behind the list.
            return unsafe { self.grow_over(bytes.len()) };
        }
        self.as_list(|list| list.extend_from_slice(bytes));
    }

    /// Appends two lower-case digits for each byte.
    #[inline(always)]
    pub fn hex(&mut self, bytes: &[u8]) {
        #[cfg(target_arch = "x86_64")]
        if self.is_wide {
            for step in bytes.chunks(STEP / 2) {
                // SAFETY: `is_wide` says that this CPU has all features.
                unsafe { x86_avx512::spell(step, self.room()) };
                // SAFETY: the line above wrote as many digits behind the list.
                unsafe { self.grow_over(2 * step.len()) };
            }
            return;
        }
        self.as_list(|list| hex::encode_into(bytes, list));
    }

    /// Appends `text` in quotes if all of it stands in JSON as it is, free of `"`, `\` and bytes below
    /// 0x20; else answers `false`, and nothing is appended.
    #[inline(always)]
    pub fn quoted(&mut self, text: &[u8]) -> bool {
        #[cfg(target_arch = "x86_64")]
        if self.is_wide && text.len() <= STEP {
            // SAFETY: `is_wide` says that this CPU has all features.
            let is_plain = unsafe { x86_avx512::quote(text, self.room()) };
            if is_plain {
                // SAFETY: the line before the last wrote as many bytes behind the list.
                unsafe { self.grow_over(text.len() + 2) };
            }
            return is_plain;
        }
        self.as_list(|list| portable::quoted(text, list))
    }

    /// Appends by `write`, which has the list itself: for what is long, or rare.
    #[inline(always)]
    pub fn as_list<T>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let mut list = mem::take(&mut self.list);
        let answer = write(&mut list);
        self.list = list;
        answer
    }

    /// Makes sure that the list may grow by `len` bytes without being moved.
    #[inline(always)]
    pub fn reserve(&mut self, len: usize) {
        if self.list.capacity() - self.list.len() < len {
            self.list = reserved(mem::take(&mut self.list), len);
        }
    }

    /// The bytes of memory behind the list.
    #[inline(always)]
    fn room<const N: usize>(&mut self) -> &mut [MaybeUninit<u8>; N] {
        self.reserve(N);
        self.list.spare_capacity_mut().first_chunk_mut().expect("the line above made room")
    }

    /// # Safety
    /// Of the memory behind the list, `len` bytes must have been written, within the capacity.
    #[inline(always)]
    unsafe fn grow_over(&mut self, len: usize) {
        let len = self.list.len() + len;
        // SAFETY: so the caller says.
        unsafe { self.list.set_len(len) };
    }
}

#[cold]
fn reserved(mut list: Vec<u8>, len: usize) -> Vec<u8> {
    list.reserve(len);
    list
}

/// Bytes that the wide back end handles at once.
const STEP: usize = 64;

#[cfg(test)]
mod tests;
