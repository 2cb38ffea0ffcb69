//! Who refuses what must be refused? Each case of a set is given to each peer, in a process of its own
//! that may die, hang or take all memory it can get without hurting anybody else.
//!
//! No time is taken, so a few cases are under way at once.

mod set;
mod trial;

use std::collections::BTreeMap;
use std::sync::{Mutex, mpsc};
use std::thread;

use simnet::hostile::InputKind;

use crate::peers::Workshop;
use crate::results::{CaseOutcome, Expect, Outcome};
use crate::run::Guest;
use crate::{BenchError, Counts, Parity, Plan, Progress, Row, Task};
use set::{Case, path_of};
use trial::Trial;

pub(crate) use set::{Set, open};

/// Gives each peer every case that it has a path for, and answers a row for each peer and path.
pub(crate) fn judge(
    plan: &Plan,
    set: &Set,
    guests: &[Guest],
    workshop: &Workshop,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Vec<Row>, BenchError> {
    let (mut rows, mut before, total) = (Vec::new(), 0, cases(set, guests));
    for guest in guests {
        let log = workshop.runner_log(&guest.peer).map_err(BenchError::io(&plan.work_dir))?;
        let trial = Trial { launch: &guest.launch, log, limit: plan.case_limit };
        for kind in KINDS {
            let Some(checks) = checks(guest, kind) else { continue };
            let cases: Vec<&Case> = of_kind(set, kind).collect();
            let outcomes = outcomes(&trial, &cases, &mut |done, case| {
                let (peer, case, done) = (&guest.peer, &case.name, before + done);
                progress(Progress::Case { peer, case, done, total });
            });
            before += cases.len() as u64;
            rows.push(row(guest, kind, checks, &cases, outcomes));
        }
    }
    Ok(rows)
}

/// How many cases there are to judge, of all peers on all their paths.
pub(crate) fn cases(set: &Set, guests: &[Guest]) -> u64 {
    let paths = guests.iter().flat_map(|guest| KINDS.map(|kind| (guest, kind)));
    let taken = paths.filter(|(guest, kind)| checks(guest, *kind).is_some());
    taken.map(|(_, kind)| of_kind(set, kind).count() as u64).sum()
}

fn of_kind(set: &Set, kind: InputKind) -> impl Iterator<Item = &Case> {
    set.cases.iter().filter(move |case| case.kind == kind)
}

/// What the peer checks on its path for cases of this kind, if it has one.
fn checks(guest: &Guest, kind: InputKind) -> Option<&Vec<String>> {
    guest.description.tasks.get(Task::Hostile.name())?.get(path_of(kind))
}

/// What came of each case, in their order. `judged` is told of each with how many are done.
fn outcomes(
    trial: &Trial<'_>,
    cases: &[&Case],
    judged: &mut dyn FnMut(u64, &Case),
) -> Vec<CaseOutcome> {
    let next = Mutex::new(cases.iter().enumerate());
    let take = || next.lock().expect("nobody panics with it").next();
    let mut outcomes = BTreeMap::new();
    thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        for _ in 0..AT_ONCE {
            let sender = sender.clone();
            scope.spawn(move || {
                while let Some((at, case)) = take() {
                    let _ = sender.send((at, trial.of(case)));
                }
            });
        }
        drop(sender);
        for (at, outcome) in receiver {
            outcomes.insert(at, outcome);
            judged(outcomes.len() as u64, cases[at]);
        }
    });
    outcomes.into_values().collect()
}

fn row(
    guest: &Guest,
    kind: InputKind,
    checks: &[String],
    cases: &[&Case],
    outcomes: Vec<CaseOutcome>,
) -> Row {
    let Guest { peer, description, .. } = guest;
    let of_invalid = |outcome| {
        let is_one = |case: &&CaseOutcome| case.expect == Expect::Refuse && case.outcome == outcome;
        outcomes.iter().filter(is_one).count() as u64
    };
    let is_refused = |case: &&CaseOutcome| case.expect == Expect::Accept && !case.is_right();
    let counts = Counts::from_iter([
        ("accepted", of_invalid(Outcome::Accepted)),
        ("refused", of_invalid(Outcome::Refused)),
        ("crashed", of_invalid(Outcome::Crashed)),
        ("hung", of_invalid(Outcome::Hung)),
    ]);
    let is_right = outcomes.iter().all(CaseOutcome::is_right);
    Row {
        task: Task::Hostile.name().to_owned(),
        variant: path_of(kind).to_owned(),
        peer: peer.clone(),
        language: description.language.clone(),
        version: description.version.clone(),
        checks: checks.to_vec(),
        unit: Task::Hostile.unit().to_owned(),
        units: cases.len() as u64,
        bytes: cases.iter().map(|case| case.bytes).sum(),
        passes_ns: Vec::new(),
        stages_ns: BTreeMap::new(),
        per_s: None,
        mb_per_s: None,
        chunks: None,
        allocations: None,
        sizes: None,
        counts,
        valid_refused: Some(outcomes.iter().filter(is_refused).count() as u64),
        cases: outcomes,
        parity: if is_right { Parity::Ok } else { Parity::Mismatch },
        note: None,
    }
}

const KINDS: [InputKind; 2] = [InputKind::Repo, InputKind::Frames];

/// Processes that are under way together.
const AT_ONCE: usize = 2;
