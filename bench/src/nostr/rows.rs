//! How long are the events of a corpus in each format? No time is taken: one answer is as good as many.

use std::collections::BTreeMap;

use bumpalo::Bump;
use wireproof::nostr::formats::Format;
use wireproof::nostr::{Event, Limits};

use super::sizes;
use crate::corpora::{Corpus, nostr};
use crate::error::BenchError;
use crate::own::PEER;
use crate::{Counts, Parity, Plan, Row, Task};

/// A row for each format over all events, and one for each kind that tables tell apart; none if the plan
/// leaves the task or us out.
pub(crate) fn rows(plan: &Plan, corpora: &[Corpus]) -> Result<Vec<Row>, BenchError> {
    let is_chosen = plan.peers.as_ref().is_none_or(|peers| peers.iter().any(|peer| peer == PEER));
    let corpus = corpora.iter().find(|corpus| corpus.task == Task::NostrSize);
    let Some(corpus) = corpus.filter(|_| is_chosen && plan.own.is_some()) else {
        return Ok(Vec::new());
    };
    let [path, ..] = &corpus.files[..] else { return Ok(Vec::new()) };
    let file = std::fs::read(path).map_err(BenchError::io(path))?;
    let arena = Bump::new();
    let faulty = |fault| BenchError::Corpus { path: path.clone(), fault };
    let groups = nostr::groups(&file).unwrap_or_default();
    let events = nostr::events(&groups, &arena).map_err(faulty)?;
    Ok(of_all(&events).chain(of_kinds(&events)).collect())
}

fn of_all<'e>(events: &'e [Event<'e>]) -> impl Iterator<Item = Row> + 'e {
    Format::ALL.iter().map(|format| row(*format, format.name().to_owned(), events))
}

fn of_kinds<'e>(events: &'e [Event<'e>]) -> impl Iterator<Item = Row> + 'e {
    let kinds = simnet::nostr_sampling::KINDS.into_iter();
    kinds.flat_map(|kind| {
        let of_kind: Vec<Event<'_>> =
            events.iter().filter(|event| event.kind == kind).copied().collect();
        let name = move |format: Format| format!("{}@kind-{kind}", format.name());
        let rows = Format::ALL.iter().map(move |format| row(*format, name(*format), &of_kind));
        rows.filter(|row| row.units > 0)
    })
}

fn row(format: Format, variant: String, events: &[Event<'_>]) -> Row {
    let refused = events.iter().filter(|event| !comes_back(format, event)).count() as u64;
    let (sizes, note) = match sizes(format, events) {
        Ok(sizes) => (Some(sizes), None),
        Err(error) => (None, Some(error.to_string())),
    };
    let units = events.len() as u64;
    Row {
        task: Task::NostrSize.name().to_owned(),
        variant,
        peer: PEER.to_owned(),
        language: "rust".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        checks: Vec::new(),
        unit: Task::NostrSize.unit().to_owned(),
        units,
        bytes: sizes.map_or(0, |sizes| sizes.raw),
        passes_ns: Vec::new(),
        stages_ns: BTreeMap::new(),
        per_s: None,
        mb_per_s: None,
        chunks: None,
        allocations: None,
        sizes,
        counts: Counts::from_iter([("events", units), ("errors", refused)]),
        valid_refused: None,
        cases: Vec::new(),
        parity: if refused == 0 { Parity::Ok } else { Parity::Mismatch },
        note,
    }
}

/// Whether an event can be held, and is what was held when it is read again.
fn comes_back(format: Format, event: &Event<'_>) -> bool {
    let (arena, mut bytes) = (Bump::new(), Vec::new());
    let is_held = format.encode(event, &mut bytes).is_ok();
    is_held && format.decode(&bytes, &arena, &Limits::default()).as_ref() == Ok(event)
}
