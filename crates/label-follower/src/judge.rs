//! The verdicts on a batch of messages of one labeler, and their lines.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use atproto::event::FrameError;
use atproto::label::{Label, LabelMessage, Labels};
use base::now_micros;
use bytes::Bytes;
use codec::printable::escape_json;
use crypto::CompressedKey;
use delivery::EventId;
use events::{LabelLine, Verdict};
use kernels::sha256;
use tokio::time::Instant;
use verify::labels::{LabelJudge, LabelOutcome, ReceivedLabel, message_code};

use crate::client::ClientItem;
use crate::counts::Counts;
use crate::gather::Batch;
use crate::key_table::{BatchKeys, KeyTable};
use crate::labeler::Labeler;
use crate::lines::label_line;

/// Judges the messages of one labeler.
pub(crate) struct Judge {
    pub(crate) labeler: Labeler,
    pub(crate) keys: Arc<KeyTable>,
    /// Lent to a thread while it judges.
    judge: Option<Box<LabelJudge>>,
}

/// Lines, and the cursors after them.
#[derive(Default)]
pub(crate) struct JudgedBatch {
    /// The lines, one after the other.
    pub(crate) lines: Vec<u8>,
    pub(crate) items: Vec<JudgedItem>,
    pub(crate) counts: Counts,
    /// Warnings about refused labels and unreadable messages: code and text.
    pub(crate) warnings: Vec<(&'static str, String)>,
}

/// A line.
pub(crate) struct JudgedItem {
    /// The end of the line in the lines of the batch.
    pub(crate) end: usize,
    pub(crate) label: Option<LabelItem>,
    /// The cursor after this line; absent before the last label of a message.
    pub(crate) seq: Option<u64>,
}

/// A label of a line.
pub(crate) struct LabelItem {
    pub(crate) id: EventId,
    pub(crate) digest: sha256::Digest,
    pub(crate) bytes: Bytes,
    /// The number of its message, and its index in it.
    pub(crate) place: (u64, u64),
    /// The stable code of the verdict.
    pub(crate) code: &'static str,
    /// The key that signed it, if it is verified.
    pub(crate) key: Option<CompressedKey>,
    /// The time of the verdict, in microseconds since 1970.
    pub(crate) judged: i64,
}

impl Judge {
    pub(crate) fn new(labeler: Labeler, keys: Arc<KeyTable>, accept_earlier_keys: bool) -> Self {
        let random = || RandomState::new().build_hasher().finish().to_le_bytes();
        let seed = [random(), random()].concat().try_into().expect("twice eight bytes");
        let judge = Some(Box::new(LabelJudge::new(seed, accept_earlier_keys)));
        Self { labeler, keys, judge }
    }

    /// Judges a batch that is received. If a label does not prove, its source is looked up again.
    pub(crate) async fn judge(&mut self, batch: Batch) -> JudgedBatch {
        let received = Instant::now();
        let batch = Arc::new(batch);
        loop {
            let (judged, unproved) = self.judge_once(&batch).await;
            let service = self.labeler.did.as_did();
            if unproved.is_empty() || !self.keys.refresh(service, &unproved, received).await {
                return judged;
            }
        }
    }

    /// The lines, and the sources whose labels do not prove.
    async fn judge_once(&mut self, batch: &Arc<Batch>) -> (JudgedBatch, BTreeSet<Box<str>>) {
        let messages = batch.decode();
        let sources = sources(&received(&messages, None));
        let keys = self.keys.of_batch(self.labeler.did.as_did(), sources).await;
        let mut judge = self.judge.take().expect("it is lent to one thread at a time");
        let (batch, labeler) = (batch.clone(), self.labeler.clone());
        let judged = tokio::task::spawn_blocking(move || {
            let result = judge_items(&batch, &labeler, &mut judge, &keys);
            (judge, result)
        });
        let (judge, result) = judged.await.expect("a judge does not panic");
        self.judge = Some(judge);
        result
    }
}

/// A message of a batch, if an item is one.
type Decoded<'a> = Option<Result<LabelMessage<'a>, FrameError>>;

/// The labels of messages, in order.
fn received<'a>(messages: &[Decoded<'a>], service: Option<&'a str>) -> Vec<ReceivedLabel<'a>> {
    let labels = messages.iter().filter_map(|message| match message {
        Some(Ok(LabelMessage::Labels(labels))) => Some(&labels.labels),
        _ => None,
    });
    labels.flatten().copied().map(|bytes| ReceivedLabel { bytes, service }).collect()
}

fn judge_items(
    batch: &Batch,
    labeler: &Labeler,
    judge: &mut LabelJudge,
    keys: &BatchKeys,
) -> (JudgedBatch, BTreeSet<Box<str>>) {
    let messages = batch.decode();
    let received = received(&messages, Some(labeler.did.as_str()));
    let now = i64::try_from(now_micros()).unwrap_or(i64::MAX);
    let outcomes = judge.judge(&received, keys, now);
    let unproved = unproved(&received, &outcomes);
    let mut writer = Writer {
        labeler,
        host: labeler.origin(),
        now,
        judged: JudgedBatch::default(),
        judged_labels: received.iter().copied().zip(outcomes).collect::<Vec<_>>().into_iter(),
    };
    for (item, message) in batch.items.iter().zip(&messages) {
        match (item, message) {
            (ClientItem::Message { bytes, .. }, Some(Ok(message))) => {
                writer.message(bytes, message);
            }
            (_, Some(Err(error))) => writer.unreadable(message_code(error), &error.to_string()),
            (ClientItem::Text, None) => writer.unreadable("frame/cbor", "a text"),
            (_, Some(Ok(_)) | None) => {}
        }
    }
    (writer.judged, unproved)
}

/// The sources of labels.
pub(crate) fn sources<'a>(labels: &[ReceivedLabel<'a>]) -> BTreeSet<&'a str> {
    let parsed = labels.iter().filter_map(|label| Label::parse(label.bytes).ok());
    parsed.map(|label| label.fields.src).collect()
}

/// The sources of labels that do not prove.
pub(crate) fn unproved(
    labels: &[ReceivedLabel<'_>],
    outcomes: &[LabelOutcome<'_>],
) -> BTreeSet<Box<str>> {
    let unproved = labels.iter().zip(outcomes).filter_map(|(received, outcome)| {
        let is_unproved = outcome.is_err_and(|why| NOT_PROVED.contains(&why.code()));
        let label = Label::parse(received.bytes).ok().filter(|_| is_unproved)?;
        Some(Box::from(label.fields.src))
    });
    unproved.collect()
}

/// The codes of labels whose proof another key could be.
const NOT_PROVED: [&str; 4] =
    ["signature/wrong", "signature/no-key", "label/source", "label/earlier-key"];

/// Writes lines.
struct Writer<'a> {
    labeler: &'a Labeler,
    host: String,
    /// The time of the verdicts, in microseconds since 1970.
    now: i64,
    judged: JudgedBatch,
    /// The labels of all messages, in order.
    judged_labels: std::vec::IntoIter<(ReceivedLabel<'a>, LabelOutcome<'a>)>,
}

impl Writer<'_> {
    fn message(&mut self, bytes: &Bytes, message: &LabelMessage<'_>) {
        match message {
            LabelMessage::Labels(labels) => self.labels(bytes, labels),
            LabelMessage::Info(info) => self.notice("info", info.name, info.message),
            LabelMessage::Error(error) => self.notice("error", error.error, error.message),
            LabelMessage::Unknown(unknown) => {
                self.notice("unknown", unknown.header.kind.unwrap_or_default(), None);
            }
        }
    }

    fn labels(&mut self, message: &Bytes, labels: &Labels<'_>) {
        let seq = u64::try_from(labels.seq).unwrap_or_default();
        for index in 0..labels.labels.len() as u64 {
            let (received, outcome) = self.judged_labels.next().expect("a verdict for each label");
            self.count(&outcome);
            let line = LabelLine {
                host: Some(self.host.as_str().into()),
                seq: Some(seq),
                index: Some(index),
                ..label_line(received, &outcome)
            };
            append(&mut self.judged.lines, &line);
            let (code, key) = match &outcome {
                Ok(judged) => (judged.standing.code(), Some(judged.key)),
                Err(why) => (why.code(), None),
            };
            let label = LabelItem {
                id: EventId::of_label(self.labeler.did.as_str(), &self.host, seq, index),
                digest: sha256::digest(received.bytes),
                bytes: message.slice_ref(received.bytes),
                place: (seq, index),
                code,
                key,
                judged: self.now,
            };
            let is_last = index + 1 == labels.labels.len() as u64;
            self.end(Some(label), is_last.then_some(seq));
        }
        if labels.labels.is_empty() {
            self.end(None, Some(seq));
        }
    }

    fn count(&mut self, outcome: &LabelOutcome<'_>) {
        let counts = &mut self.judged.counts;
        counts.received += 1;
        match outcome {
            Ok(judged) => {
                counts.verified += 1;
                counts.negations += u64::from(judged.label.fields.is_negation());
            }
            Err(why) => {
                counts.refused += 1;
                let text = format!("{}: a label is refused: {why} ({})", self.host, why.code());
                self.judged.warnings.push((why.code(), text));
            }
        }
    }

    fn notice(&mut self, kind: &'static str, name: &str, message: Option<&str>) {
        let text = match message {
            Some(message) => format!("{name}: {message}"),
            None => name.to_owned(),
        };
        self.judged.warnings.push((kind, format!("{}: {kind}: {text}", self.host)));
        self.line_about(kind, None, &text);
    }

    fn unreadable(&mut self, code: &'static str, rule: &str) {
        self.judged.counts.unreadable += 1;
        let text = format!("{}: a message that cannot be read: {rule} ({code})", self.host);
        self.judged.warnings.push((code, text));
        self.line_about("undecodable", Some(code), rule);
    }

    fn line_about(&mut self, kind: &str, code: Option<&str>, message: &str) {
        let line = LabelLine {
            v: 1,
            kind: kind.into(),
            service: Some(self.labeler.did.as_str().into()),
            host: Some(self.host.as_str().into()),
            verdict: code.map(|_| Verdict::Refused),
            code: code.map(Into::into),
            message: Some(message.into()),
            ..LabelLine::default()
        };
        append(&mut self.judged.lines, &line);
        self.end(None, None);
    }

    fn end(&mut self, label: Option<LabelItem>, seq: Option<u64>) {
        let end = self.judged.lines.len();
        self.judged.items.push(JudgedItem { end, label, seq });
    }
}

fn append(lines: &mut Vec<u8>, line: &LabelLine<'_>) {
    let start = lines.len();
    line.append(lines);
    escape_json(lines, start);
    lines.push(b'\n');
}
