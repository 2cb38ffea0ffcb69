//! Whose key is it? The caller knows, from DID documents.

use crypto::CompressedKey;

/// Knows the signing keys of accounts. Closures from a DID to an optional key do.
///
/// What is not known must be looked up outside, for which a batch does not wait: its events are
/// refused for the lack of a key, and can be judged again.
pub trait KeySource {
    /// What is known of the account with this DID. Asked once a batch for each account.
    fn key(&self, did: &str) -> AccountKey;
}

/// What is known of an account's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountKey {
    /// The key that its DID document names.
    Known(CompressedKey),
    /// Nothing.
    Unknown,
    /// The account is hosted elsewhere: its DID document names another server than the one that this
    /// stream comes from. For those who listen to servers directly.
    OtherHost,
}

impl From<Option<CompressedKey>> for AccountKey {
    fn from(key: Option<CompressedKey>) -> Self {
        key.map_or(Self::Unknown, Self::Known)
    }
}

impl<F: Fn(&str) -> K, K: Into<AccountKey>> KeySource for F {
    fn key(&self, did: &str) -> AccountKey {
        self(did).into()
    }
}
