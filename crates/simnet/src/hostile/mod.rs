//! Malformed inputs, and unusual valid ones.
//!
//! ```text
//! seed ── fixture: two accounts, their records ── parts: valid until they are changed
//!          │
//!          └─ frame · car · commit · tree · record · event · operation · part · valid ──> cases, manifest
//! ```
//!
//! A case is a CAR archive of a repository or of a part of one, or a file of frames of which the last is tested. It breaks
//! exactly one rule, stated in the manifest, or none. Where the fault allows, hashes and signature are
//! valid, so that only the rule itself can reject the case. No tree contains itself: that would take a
//! collision of SHA-256. Nothing here reads or verifies the cases.
//!
//! ```
//! use wireproof_simnet::hostile::{CaseSet, Spec};
//! let set = CaseSet::generate(&Spec::default());
//! let case = set.cases().iter().find(|case| case.name == "tree/prefix-500").unwrap();
//! assert_eq!(case.code, Some("tree/prefix"));
//! ```

mod altered;
mod car;
mod case;
mod commit;
mod event;
mod fixture;
mod frame;
mod operation;
mod part;
mod parts;
mod record;
#[cfg(test)]
mod tests;
mod tree;
mod valid;

use std::path::Path;

pub use altered::{Addition, AlteredBlocks};
pub use case::{Case, CaseContext, CaseEntry, Expect, InputKind, Layer, Manifest, Rule};

use crate::corpus::{self, FileError};
use crate::random::DEFAULT_SEED;
use fixture::Fixture;

/// The specification of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The seed.
    pub seed: u64,
}

impl Default for Spec {
    /// The published set.
    fn default() -> Self {
        Self { seed: DEFAULT_SEED }
    }
}

/// A set of cases.
#[derive(Clone, Debug)]
pub struct CaseSet {
    spec: Spec,
    cases: Vec<Case>,
}

impl CaseSet {
    /// Generates the set of `spec`.
    pub fn generate(spec: &Spec) -> Self {
        let fixture = Fixture::new(spec.seed);
        let layers = [
            valid::cases,
            frame::cases,
            car::cases,
            commit::cases,
            tree::cases,
            record::cases,
            event::cases,
            operation::cases,
            part::cases,
        ];
        let mut cases: Vec<Case> = layers.into_iter().flat_map(|cases| cases(&fixture)).collect();
        // By layer; within a layer in order of generation.
        cases.sort_by_key(|case| (case.layer, case.expect));
        Self { spec: spec.clone(), cases }
    }

    /// The specification.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The cases by layer, valid ones first.
    pub fn cases(&self) -> &[Case] {
        &self.cases
    }

    /// The description of the set.
    pub fn manifest(&self) -> Manifest {
        Manifest { seed: self.spec.seed, cases: self.cases.iter().map(CaseEntry::new).collect() }
    }

    /// Writes the cases with their contexts below the folder of `path`, and then the manifest to `path`.
    ///
    /// # Errors
    /// If a folder cannot be created or a file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), FileError> {
        for case in &self.cases {
            let file = path.with_file_name(case.file_name());
            corpus::write(&file, &case.bytes, &CaseContext::new(case))?;
        }
        corpus::write_json(path, &self.manifest())
    }
}
