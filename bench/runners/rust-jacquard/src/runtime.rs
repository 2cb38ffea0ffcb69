//! Where do jacquard's futures run? It spawns tasks for the subtrees of a tree, so there has to be a
//! runtime; on one core, one of a single thread.

use std::future::Future;

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
