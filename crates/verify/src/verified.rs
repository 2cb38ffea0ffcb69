//! How does a proof travel with the value that it is about?

use std::ops::Deref;

/// A value that this crate has proved; nobody else can make one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verified<T>(T);

impl<T> Verified<T> {
    /// Vouches for `value`: the caller has made every check that the function it is in promises.
    pub(crate) fn vouch(value: T) -> Self {
        Self(value)
    }

    /// The value, without the proof.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for Verified<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
