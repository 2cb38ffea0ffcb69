//! Nostr events in files: how are they read and written, and how long are they?

mod sizes;

pub use sizes::sizes;
