//! What do the hostile send next? The cases of one set after the other, each set with accounts of its
//! own.

use simnet::hostile::{Case, CaseSet, Spec};

pub(crate) struct Guests {
    seed: u64,
    cases: std::vec::IntoIter<Case>,
}

impl Guests {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, cases: Vec::new().into_iter() }
    }

    /// The next case, without end.
    pub(crate) fn next(&mut self) -> Case {
        loop {
            if let Some(case) = self.cases.next() {
                return case;
            }
            self.cases = CaseSet::generate(&Spec { seed: self.seed }).cases().to_vec().into_iter();
            self.seed = self.seed.wrapping_add(1);
        }
    }
}
