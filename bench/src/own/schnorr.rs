//! How do we verify events when measured? The key is parsed and the signature verified, one event at a
//! time or many together.

use std::hint::black_box;

use wireproof::crypto::schnorr::{KeyRef, SignatureCheck, verify_many};

use super::Work;
use super::sigs::BATCH;
use crate::corpora::commits::Refusal;
use crate::corpora::events::{self, Event, Tally};
use crate::counts::Counts;
use crate::protocol::Loaded;

/// The variants by name; none makes a check that another could leave out.
pub(super) fn variants() -> impl Iterator<Item = (String, &'static [&'static str])> {
    ["verify", "verify/batch"].into_iter().map(|name| (name.to_owned(), NO_CHECKS))
}

/// Makes ready for `variant`; `None` if there is no such one.
pub(super) fn open<'f>(
    variant: &str,
    files: &'f [Vec<u8>],
) -> Result<Option<Box<dyn Work + 'f>>, String> {
    let mut lines = Vec::new();
    for file in files {
        lines.extend(events::lines(file).ok_or("not lines of UTF-8")?);
    }
    let events = Events::of(&lines);
    Ok(match variant {
        "verify" => Some(Box::new(Alone(events))),
        "verify/batch" => Some(Box::new(Together(events))),
        _ => None,
    })
}

type Verdict = Result<(), Refusal>;

struct Events {
    loaded: Loaded,
    events: Vec<Result<Event, Refusal>>,
}

impl Events {
    fn of(lines: &[&str]) -> Self {
        let bytes = lines.iter().map(|line| line.len() as u64).sum();
        let events = lines.iter().map(|line| Event::read(line)).collect();
        Self { loaded: Loaded { units: lines.len() as u64, bytes }, events }
    }
}

fn count(verdicts: impl Iterator<Item = Verdict>) -> Counts {
    let mut tally = Tally::default();
    verdicts.for_each(|verdict| tally.note(verdict));
    tally.into()
}

/// One event after the other.
struct Alone(Events);

impl Alone {
    fn verdicts(&self) -> impl Iterator<Item = Verdict> {
        self.0.events.iter().map(|event| event.as_ref().map_err(|refusal| *refusal)?.verify())
    }
}

impl Work for Alone {
    fn loaded(&self) -> Loaded {
        self.0.loaded
    }

    fn prove(&mut self) -> Counts {
        count(self.verdicts())
    }

    fn pass(&mut self) {
        for verdict in self.verdicts() {
            let _ = black_box(verdict);
        }
    }
}

/// As many as make a batch, and then the next.
struct Together(Events);

impl Work for Together {
    fn loaded(&self) -> Loaded {
        self.0.loaded
    }

    fn prove(&mut self) -> Counts {
        count(self.0.events.chunks(BATCH).flat_map(judge))
    }

    fn pass(&mut self) {
        for batch in self.0.events.chunks(BATCH) {
            black_box(judge(batch));
        }
    }
}

fn judge(batch: &[Result<Event, Refusal>]) -> Vec<Verdict> {
    let checks: Vec<SignatureCheck<'_>> = batch.iter().flatten().map(check).collect();
    let mut verdicts = verify_many(&checks).into_iter();
    let verdict = |event: &Result<Event, Refusal>| {
        event.as_ref().map_err(|refusal| *refusal)?;
        Ok(verdicts.next().expect("one for each event that was read")?)
    };
    batch.iter().map(verdict).collect()
}

fn check(event: &Event) -> SignatureCheck<'_> {
    SignatureCheck { message: &event.id, signature: &event.sig, key: KeyRef::Bytes(&event.pubkey) }
}

const NO_CHECKS: &[&str] = &[];
