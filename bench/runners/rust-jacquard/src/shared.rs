//! The runtime of jacquard's futures, and its keys.

use std::future::Future;

use jacquard_common::types::crypto::PublicKey;
use runner_shell::BoxError;

/// A single-threaded runtime: jacquard spawns tasks for the subtrees of a tree, and runs on one core.
pub(crate) struct Runtime(tokio::runtime::Runtime);

impl Runtime {
    pub(crate) fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        Runtime(runtime.expect("a runtime without input and output needs nothing"))
    }

    pub(crate) fn run<F: Future>(&self, future: F) -> F::Output {
        self.0.block_on(future)
    }
}

/// Parses a `did:key`, which is a multikey with a prefix.
pub(crate) fn parse_key(did_key: &str) -> Result<PublicKey<'static>, BoxError> {
    let multikey = did_key.strip_prefix("did:key:").ok_or("a key is a did:key")?;
    Ok(PublicKey::decode(multikey)?)
}
