//! What does a peer do with one case?

use std::fs::File;
use std::time::Duration;

use serde::de::IgnoredAny;

use super::Case;
use crate::exchange::{Fault, Runner, one_line};
use crate::peers::Launch;
use crate::protocol::{Proof, Request};
use crate::results::{CaseOutcome, Outcome};

/// How a peer is asked about a case.
pub(crate) struct Trial<'p> {
    pub(crate) launch: &'p Launch,
    /// What its process writes for a person.
    pub(crate) log: File,
    /// How long it may take to answer.
    pub(crate) limit: Duration,
}

impl Trial<'_> {
    /// Starts the peer, gives it the case, and ends it.
    pub(crate) fn of(&self, case: &Case) -> CaseOutcome {
        let (outcome, reason) = match self.ask(case) {
            Ok(proof) => verdict(proof),
            // It read the case, and says that it is none.
            Err(Fault::Refused(reason)) => (Outcome::Refused, Some(reason)),
            Err(fault @ Fault::Limit(_)) => (Outcome::Hung, Some(fault.to_string())),
            Err(fault) => (Outcome::Crashed, Some(fault.to_string())),
        };
        CaseOutcome { name: case.name.clone(), expect: case.expect, outcome, reason }
    }

    fn ask(&self, case: &Case) -> Result<Proof, Fault> {
        let log = self.log.try_clone().map_err(Fault::Start)?;
        let command = self.launch.command_within(MEMORY_BYTES);
        let mut runner = Runner::start(command, None, log, self.limit)?;
        runner.ask::<IgnoredAny>(&case.load())?;
        runner.ask(&Request::Prove)
    }
}

fn verdict(Proof { counts, reason, .. }: Proof) -> (Outcome, Option<String>) {
    let reason = reason.map(|reason| one_line(&reason));
    match (counts.get("accepted"), counts.get("refused")) {
        (Some(1), Some(0)) => (Outcome::Accepted, reason),
        (Some(0), Some(1)) => (Outcome::Refused, reason),
        _ => (Outcome::Crashed, Some("neither accepted nor refused".to_owned())),
    }
}

/// More than any peer needs for any case, and less than a machine can spare twice.
const MEMORY_BYTES: u64 = 4 << 30;
