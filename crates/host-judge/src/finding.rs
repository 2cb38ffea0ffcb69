//! Findings, and a bounded list of them.

use std::collections::HashSet;

use net::remote_text::sanitize;
use serde::Serialize;

use crate::rule::{Kind, OF_DATA, Rule};

/// One finding about a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The stable code of the rule.
    pub code: &'static str,
    /// How it counts.
    pub kind: Kind,
    /// The method where it was seen, such as `subscribeRepos`.
    pub method: &'static str,
    /// The account.
    pub account: Option<String>,
    /// The sequence number.
    pub seq: Option<i64>,
    /// The observation.
    pub message: String,
    /// What to do about it.
    pub action: &'static str,
    /// A command that shows it again.
    pub command: String,
}

impl Finding {
    /// A finding of a rule of hosts.
    pub(crate) fn of(rule: &Rule, method: &'static str, message: impl Into<String>) -> Self {
        Self::new(rule.code, rule.kind, method, message.into(), rule.action)
    }

    /// Data that breaks a rule of its own.
    pub(crate) fn of_data(code: &'static str, method: &'static str, message: String) -> Self {
        Self::new(code, Kind::Violation, method, message, OF_DATA)
    }

    fn new(
        code: &'static str,
        kind: Kind,
        method: &'static str,
        message: String,
        action: &'static str,
    ) -> Self {
        let (account, seq, command) = (None, None, String::new());
        let message = sanitize(&message, MAX_MESSAGE_CHARS);
        Self { code, kind, method, account, seq, message, action, command }
    }

    /// The same about an account.
    pub(crate) fn about(self, did: &str) -> Self {
        Self { account: Some(sanitize(did, MAX_DID_CHARS)), ..self }
    }

    /// The same at a sequence number.
    pub(crate) fn at(self, seq: i64) -> Self {
        Self { seq: Some(seq), ..self }
    }

    /// The same with the command that shows it.
    pub(crate) fn seen_by(self, command: String) -> Self {
        Self { command, ..self }
    }
}

/// The findings about a host: of every code the first few, and the number of all.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    kept: Vec<Finding>,
    counts: Vec<(&'static str, Kind, u64)>,
    known: HashSet<(&'static str, &'static str, Option<String>, Option<i64>)>,
}

impl Findings {
    /// Adds a finding, unless it is known.
    pub(crate) fn add(&mut self, finding: Finding) {
        let Finding { code, kind, method, .. } = finding;
        let key = (code, method, finding.account.clone(), finding.seq);
        if self.known.contains(&key) {
            return;
        }
        if self.known.len() < MAX_KNOWN {
            self.known.insert(key);
        }
        let count = match self.counts.iter_mut().find(|(counted, ..)| *counted == code) {
            Some((.., count)) => count,
            None => {
                self.counts.push((code, kind, 0));
                &mut self.counts.last_mut().expect("the entry that was just added").2
            }
        };
        *count += 1;
        if *count <= MAX_PER_CODE {
            self.kept.push(finding);
        }
    }

    /// The kept findings, violations first, and the number of findings of every code.
    pub(crate) fn finish(self) -> (Vec<Finding>, Vec<(&'static str, Kind, u64)>) {
        let Self { mut kept, mut counts, .. } = self;
        kept.sort_by_key(|finding| (finding.kind, finding.code));
        counts.sort_by_key(|(code, kind, _)| (*kind, *code));
        (kept, counts)
    }
}

/// Findings of one code that are kept.
const MAX_PER_CODE: u64 = 5;
/// Findings that are told apart.
const MAX_KNOWN: usize = 10_000;
const MAX_MESSAGE_CHARS: usize = 400;
const MAX_DID_CHARS: usize = 160;
