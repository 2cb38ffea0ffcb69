//! Archives frames that were captured before: verified, and sealed in parts.

use atproto::event::Event;
use atproto::syntax::Did;
use verify::sync::{AccountKey, AccountState, Judge, KeySource, MemoryState, Outcome, Policy};

use crate::archive::Archive;
use crate::decode_limits::check_frame;
use crate::error::ArchiveError;
use crate::event::{ArchivedEvent, kind};
use crate::sealed::{Sealed, WorkId};

/// Where frames come from, and when.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    /// The host that sent them.
    pub host: String,
    /// The name of the frames: frames of the same name are archived once.
    pub name: String,
    /// The time in microseconds since 1970, which is their time of arrival.
    pub now_micros: i64,
    /// The policy under which they are judged.
    pub policy: Policy,
}

/// The result of an import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Number of verified events.
    pub verified: u64,
    /// Number of events without a signature: `#identity` and `#account`.
    pub unchecked: u64,
    /// Number of events that are not verified.
    pub refused: u64,
    /// The stored rows.
    pub sealed: Sealed,
}

impl Archive {
    /// Archives frames, in their order, under the keys of their accounts.
    ///
    /// # Errors
    /// If the archive cannot be written, or a frame has more than 32 MiB.
    pub async fn import_frames<'f>(
        &self,
        frames: impl IntoIterator<Item = &'f [u8]>,
        keys: &impl KeySource,
        options: &ImportOptions,
    ) -> Result<Imported, ArchiveError> {
        let mut frames = frames.into_iter().peekable();
        let mut importer = Importer::new(keys, options);
        let mut number = 0;
        while frames.peek().is_some() {
            let verdicts = importer.judge_part(&mut frames)?;
            let work = WorkId { writer: format!("import-{}", options.name), number };
            let events = verdicts.iter().map(|judged| judged.event(options)).collect();
            let sealed = self.seal(events, &work).await?;
            importer.imported.sealed += sealed;
            number += 1;
        }
        Ok(importer.imported)
    }
}

/// Judges frames in parts.
struct Importer<'o, K> {
    keys: &'o K,
    options: &'o ImportOptions,
    judge: Judge,
    state: MemoryState,
    arrival: i64,
    imported: Imported,
}

impl<'o, K: KeySource> Importer<'o, K> {
    fn new(keys: &'o K, options: &'o ImportOptions) -> Self {
        Self {
            keys,
            options,
            judge: Judge::builder().policy(options.policy).build(),
            state: MemoryState::default(),
            arrival: options.now_micros,
            imported: Imported::default(),
        }
    }

    /// Judges frames of some size.
    fn judge_part<'f>(
        &mut self,
        frames: &mut std::iter::Peekable<impl Iterator<Item = &'f [u8]>>,
    ) -> Result<Vec<JudgedFrame<'f>>, ArchiveError> {
        let mut part = Vec::new();
        let mut bytes = 0;
        while bytes < PART_BYTES && frames.peek().is_some() {
            let batch = next_batch(frames);
            for frame in &batch {
                check_frame(frame.len() as u64).map_err(ArchiveError::at(&self.options.name))?;
            }
            bytes += batch.iter().map(|frame| frame.len()).sum::<usize>();
            self.judge_batch(&batch, &mut part);
        }
        Ok(part)
    }

    fn judge_batch<'f>(&mut self, batch: &[&'f [u8]], part: &mut Vec<JudgedFrame<'f>>) {
        let now = self.options.now_micros.max(0) as u64;
        let Ok(verdicts) = self.judge.judge_batch(batch, self.keys, &mut self.state, now);
        let mut status = None;
        for (frame, judged) in batch.iter().copied().zip(&verdicts) {
            let code = judged.outcome.code();
            match &judged.outcome {
                outcome if outcome.is_accepted() => self.imported.verified += 1,
                Outcome::Unjudged(_) => self.imported.unchecked += 1,
                _ => self.imported.refused += 1,
            }
            let did = judged.event.and_then(account).filter(|did| Did::parse(did).is_ok());
            part.push(JudgedFrame {
                frame,
                did: did.map(Box::from),
                seq: judged.event.and_then(|event| event.seq()),
                arrival: self.arrival,
                code,
                key: judged.key.map(|key| key.to_did_key().into()),
            });
            self.arrival += 1;
            if let Outcome::Unjudged(Event::Account(account)) = judged.outcome {
                status = Some((Box::<str>::from(account.did), account.active));
            }
        }
        if let Some((did, is_active)) =
            status.filter(|(did, _)| matches!(self.keys.key(did), AccountKey::Known(_)))
        {
            self.state.put(&did, AccountState { is_active, ..self.state.get(&did) });
        }
    }
}

/// A frame and its verdict.
struct JudgedFrame<'f> {
    frame: &'f [u8],
    did: Option<Box<str>>,
    seq: Option<i64>,
    arrival: i64,
    code: &'static str,
    key: Option<Box<str>>,
}

impl<'f> JudgedFrame<'f> {
    fn event<'e>(&'e self, options: &'e ImportOptions) -> ArchivedEvent<'e> {
        ArchivedEvent {
            did: self.did.as_deref(),
            arrival: self.arrival,
            host: &options.host,
            seq: self.seq,
            kind: kind(self.frame),
            received: options.now_micros,
            verdict: self.code,
            key: self.key.as_deref(),
            judge: JUDGE,
            frame: self.frame,
        }
    }
}

/// Takes the next frames. An `#account` is the last of its batch: it decides about the commits after it.
fn next_batch<'f>(frames: &mut impl Iterator<Item = &'f [u8]>) -> Vec<&'f [u8]> {
    let mut batch = Vec::with_capacity(BATCH_LEN);
    for frame in frames.take(BATCH_LEN) {
        batch.push(frame);
        if kind(frame) == "#account" {
            break;
        }
    }
    batch
}

/// The account that an event is about.
fn account<'a>(event: &Event<'a>) -> Option<&'a str> {
    match event {
        Event::Commit(commit) => Some(commit.repo),
        Event::Sync(sync) => Some(sync.did),
        Event::Identity(identity) => Some(identity.did),
        Event::Account(account) => Some(account.did),
        _ => None,
    }
}

/// The program and the policy that judge.
pub const JUDGE: &str = concat!("wireproof/", env!("CARGO_PKG_VERSION"));

/// Frames judged together: enough to fill the signature lanes, few enough to stay in the cache.
const BATCH_LEN: usize = 512;

/// Bytes of frames that are sealed at once.
const PART_BYTES: usize = 256 << 20;
