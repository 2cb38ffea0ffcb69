//! What may somebody send who means harm, and what is odd but right?
//!
//! ```text
//! seed ── scene: two accounts, their records ── forge: parts that are right until they are changed
//!          │
//!          └─ frame · car · commit · tree · record · event · operation · valid ──> cases, manifest
//! ```
//!
//! A case is a CAR of a repository, or a file of frames of which the last is meant; it breaks one
//! rule, and the manifest says which, or it breaks none. Wherever the fault allows, hashes and
//! signature are right, so that nothing but the rule itself can refuse it. No case contains itself:
//! a node that links to a node above it would need a collision of SHA-256.
//!
//! What it leaves to others: the verdict. Nothing here reads what it made.
//!
//! ```
//! use wireproof_simnet::hostile::{CaseSet, Spec};
//! let set = CaseSet::generate(&Spec::default());
//! let case = set.cases().iter().find(|case| case.name == "tree/prefix-500").unwrap();
//! assert_eq!(case.code, Some("tree/prefix"));
//! ```

mod car;
mod case;
mod commit;
mod event;
mod forge;
mod frame;
mod healthy;
mod manifest;
mod operation;
mod record;
mod scene;
mod story;
#[cfg(test)]
mod tests;
mod tree;
mod valid;

pub use case::{Case, Expect, InputKind, Layer, Rule};
pub use manifest::{CaseContext, CaseEntry, Manifest};

use scene::Scene;

/// What set to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Everything follows from this number.
    pub seed: u64,
}

impl Default for Spec {
    /// The published set.
    fn default() -> Self {
        Self { seed: 4_621_332_152 }
    }
}

/// The cases.
#[derive(Clone, Debug)]
pub struct CaseSet {
    spec: Spec,
    cases: Vec<Case>,
}

impl CaseSet {
    /// Makes the set of `spec`.
    pub fn generate(spec: &Spec) -> Self {
        let scene = Scene::new(spec.seed);
        let layers = [
            valid::cases,
            frame::cases,
            car::cases,
            commit::cases,
            tree::cases,
            record::cases,
            event::cases,
            operation::cases,
        ];
        let mut cases: Vec<Case> = layers.into_iter().flat_map(|cases| cases(&scene)).collect();
        // In the order of the layers, within each as they were told.
        cases.sort_by_key(|case| (case.layer, case.expect));
        Self { spec: spec.clone(), cases }
    }

    /// What was asked for.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The cases, by layer; what is to be accepted comes first.
    pub fn cases(&self) -> &[Case] {
        &self.cases
    }
}
