//! Events: their ids, their form in memory, and the bytes of a stored batch of them.
//!
//! An event in a batch, with lengths in little-endian order:
//!
//! | bytes | content |
//! |---|---|
//! | 4 | length of the payload |
//! | 2 | length of the id |
//! | 2 | length of the account |
//! | | id, account, payload |

use std::fmt;

use bytes::Bytes;
use data_encoding::BASE32_NOPAD;
use kernels::{hex, sha256};

use crate::record_effects::RecordEffects;

/// The id of an event: the same at every delivery, in every run, on every machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventId(Box<str>);

impl EventId {
    /// The id of a verified commit, `DID/rev`: the same from every host.
    ///
    /// Only for verified commits. Another message can claim the account and revision of a commit, and takes
    /// [`of_message`](Self::of_message).
    pub fn of_commit(did: &str, rev: &str) -> Self {
        Self(format!("{}/{}", bounded(did), bounded(rev)).into())
    }

    /// The id of a line about a resynced repository, `DID/rev/time/piece`. All pieces have the time of the fetch, in
    /// microseconds: a revision that is fetched again can have other pieces.
    pub fn of_resync(did: &str, rev: &str, fetched_micros: u64, piece: u64) -> Self {
        Self(format!("{}/{}/{fetched_micros}/{piece}", bounded(did), bounded(rev)).into())
    }

    /// The id of every other message of a stream, `DID/host#seq`. `did` is empty for a message without an account.
    pub fn of_message(did: &str, host: &str, seq: u64) -> Self {
        Self(format!("{}/{}#{seq}", bounded(did), bounded(host)).into())
    }

    /// The id of a Nostr event, in hexadecimal.
    pub fn of_nostr_event(id: &[u8; 32]) -> Self {
        Self(hex::encode(id).into())
    }

    /// The id of a label, by its place in the stream of a service: `DID/host#seq/index`.
    pub fn of_label(service: &str, host: &str, seq: u64, index: u64) -> Self {
        let Self(message) = Self::of_message(service, host, seq);
        Self(format!("{message}/{index}").into())
    }

    /// An id that was stored.
    pub(crate) fn stored(id: &str) -> Self {
        Self(id.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A name of bounded length: a text that is too long is replaced by its hash.
pub(crate) fn bounded(name: &str) -> Box<str> {
    match name.len() {
        0..=MAX_NAME_BYTES => name.into(),
        _ => format!("sha256:{}", BASE32_NOPAD.encode(&sha256::digest(name.as_bytes()))).into(),
    }
}

/// The part that another event with the same id shares if it is a repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ComparedBy {
    /// The whole event.
    All,
    /// The payload from this offset on.
    PayloadFrom(usize),
    /// SHA-256 of the message that the payload describes.
    Source(sha256::Digest),
}

/// An event to store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEvent {
    id: EventId,
    account: Box<str>,
    payload: Bytes,
    compared_by: ComparedBy,
    effects: Option<RecordEffects>,
}

impl NewEvent {
    /// An event of `account`, which is the unit of order: its DID, or empty for a message without one. `payload` is a
    /// JSON object on one line, without the line feed, and contains the id where consumers need it.
    ///
    /// # Errors
    /// If the payload is empty, longer than [`MAX_PAYLOAD_BYTES`], or contains a line feed.
    pub fn new(
        id: EventId,
        account: &str,
        payload: impl Into<Bytes>,
    ) -> Result<Self, InvalidPayload> {
        let payload = payload.into();
        match payload.len() {
            0 => Err(InvalidPayload::Empty),
            len if len > MAX_PAYLOAD_BYTES => Err(InvalidPayload::TooLong(len)),
            _ if payload.contains(&b'\n') => Err(InvalidPayload::LineFeed),
            _ => {
                let compared_by = ComparedBy::All;
                Ok(Self { id, account: bounded(account), payload, compared_by, effects: None })
            }
        }
    }

    /// The event, of which another one with the same id is a repetition if the payload is equal from `offset` on.
    ///
    /// For data that can differ when the same event is received again: its host, its number, the state of its account.
    #[must_use]
    pub fn compared_from(mut self, offset: usize) -> Self {
        self.compared_by = ComparedBy::PayloadFrom(offset.min(self.payload.len()));
        self
    }

    /// The event, of which another one with the same id is a repetition if its payload describes the same bytes, `source`.
    ///
    /// For a message that can get another verdict when it is received again.
    #[must_use]
    pub fn compared_by_source(mut self, source: &[u8]) -> Self {
        self.compared_by = ComparedBy::Source(sha256::digest(source));
        self
    }

    /// The event with its effects on the records that consumers have of its account.
    #[must_use]
    pub fn with_effects(mut self, effects: RecordEffects) -> Self {
        self.effects = Some(effects);
        self
    }

    /// The id.
    pub fn id(&self) -> &EventId {
        &self.id
    }

    /// The account, and the effects on its records.
    pub(crate) fn effects(&self) -> Option<(&str, &RecordEffects)> {
        Some((&self.account, self.effects.as_ref()?))
    }

    /// The key that a repetition has too. `digest` is the digest of the stored form.
    pub(crate) fn repetition_key(&self, digest: &Digest) -> Digest {
        let compared = match &self.compared_by {
            ComparedBy::All => return *digest,
            ComparedBy::PayloadFrom(offset) => &self.payload[*offset..],
            ComparedBy::Source(source) => &source[..],
        };
        let id = self.id.0.as_bytes();
        let parts = [&(id.len() as u64).to_le_bytes()[..], id, compared];
        truncated(&sha256::digest_parts(&parts))
    }

    /// Length in a stored batch, in bytes.
    pub fn stored_len(&self) -> usize {
        HEADER_BYTES + self.id.0.len() + self.account.len() + self.payload.len()
    }

    /// Appends the stored form.
    pub(crate) fn encode(&self, batch: &mut Vec<u8>) {
        let (id, account) = (self.id.0.as_bytes(), self.account.as_bytes());
        batch.extend_from_slice(&(self.payload.len() as u32).to_le_bytes());
        batch.extend_from_slice(&(id.len() as u16).to_le_bytes());
        batch.extend_from_slice(&(account.len() as u16).to_le_bytes());
        batch.extend_from_slice(id);
        batch.extend_from_slice(account);
        batch.extend_from_slice(&self.payload);
    }
}

/// Why a payload cannot be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidPayload {
    /// It has no bytes.
    #[error("a payload must not be empty")]
    Empty,
    /// It has too many bytes.
    #[error("a payload of {0} bytes: at most {MAX_PAYLOAD_BYTES} are allowed")]
    TooLong(usize),
    /// It is more than one line.
    #[error("a payload must be one line: it contains a line feed")]
    LineFeed,
}

/// A stored event. Clones share its bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Event {
    position: u64,
    appended_micros: u64,
    id_len: usize,
    account_len: usize,
    // id, account and payload; the first two are UTF-8
    bytes: Bytes,
}

impl Event {
    /// The position in its outbox, which rises strictly and is never used again.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// When it was stored, in microseconds since 1970.
    pub fn appended_micros(&self) -> u64 {
        self.appended_micros
    }

    /// The id, as [`EventId::as_str`] has it.
    pub fn id(&self) -> &str {
        text(&self.bytes[..self.id_len])
    }

    /// The account.
    pub fn account(&self) -> &str {
        text(&self.bytes[self.id_len..self.id_len + self.account_len])
    }

    /// The payload, without a line feed.
    pub fn payload(&self) -> &[u8] {
        &self.bytes[self.id_len + self.account_len..]
    }

    /// The account, which shares the bytes of the event.
    #[cfg(feature = "kafka")]
    pub(crate) fn account_bytes(&self) -> Bytes {
        self.bytes.slice(self.id_len..self.id_len + self.account_len)
    }

    /// The payload, which shares the bytes of the event.
    #[cfg(any(feature = "kafka", feature = "nats"))]
    pub(crate) fn payload_bytes(&self) -> Bytes {
        self.bytes.slice(self.id_len + self.account_len..)
    }

    /// An event as it is stored at this position.
    #[cfg(test)]
    pub(crate) fn stored(position: u64, event: &NewEvent) -> Self {
        let mut data = Vec::new();
        event.encode(&mut data);
        let batch = Batch { first: position, appended_micros: 1, data: data.into() };
        batch.events().unwrap().remove(0)
    }

    /// Size of the event in memory and on disk, in bytes, without constant parts.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }
}

fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).expect("checked when the batch was decoded")
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut event = f.debug_struct("Event");
        event.field("position", &self.position).field("id", &self.id());
        event.field("payload_len", &self.payload().len()).finish_non_exhaustive()
    }
}

/// A batch of events in the form in which it is stored.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    /// Position of the first event.
    pub(crate) first: u64,
    /// When it was stored, in microseconds since 1970.
    pub(crate) appended_micros: u64,
    /// The events, one after the other.
    pub(crate) data: Bytes,
}

impl Batch {
    /// The events, or the rule that the bytes break.
    pub(crate) fn events(&self) -> Result<Vec<Event>, &'static str> {
        let (mut events, mut at) = (Vec::new(), 0);
        while at < self.data.len() {
            let len = entry_len(&self.data[at..]).ok_or("the length of an event")?;
            let (id_len, account_len) = name_lens(&self.data[at..]);
            let bytes = self.data.slice(at + HEADER_BYTES..at + len);
            let is_text = |names| bytes.get(names).is_some_and(|name| str::from_utf8(name).is_ok());
            if !is_text(0..id_len) || !is_text(id_len..id_len + account_len) {
                return Err("a name that is not UTF-8");
            }
            let (position, appended_micros) =
                (self.first + events.len() as u64, self.appended_micros);
            events.push(Event { position, appended_micros, id_len, account_len, bytes });
            at += len;
        }
        Ok(events)
    }
}

/// The digests of the events of a batch; `None` if its bytes are not a batch.
pub(crate) fn digests(data: &[u8]) -> Option<Vec<Digest>> {
    let (mut entries, mut at) = (Vec::new(), 0);
    while at < data.len() {
        let len = entry_len(&data[at..])?;
        entries.push(&data[at..at + len]);
        at += len;
    }
    Some(sha256::digest_many(&entries).iter().map(truncated).collect())
}

/// The half of a hash that is stored.
pub(crate) fn truncated(digest: &sha256::Digest) -> Digest {
    digest.first_chunk().copied().expect("half of a digest")
}

/// The length of the first event, if all of it is there.
fn entry_len(data: &[u8]) -> Option<usize> {
    let header = data.first_chunk::<HEADER_BYTES>()?;
    let payload_len = u32::from_le_bytes(*header.first_chunk()?) as usize;
    let (id_len, account_len) = name_lens(data);
    let len = HEADER_BYTES + id_len + account_len + payload_len;
    (payload_len <= MAX_PAYLOAD_BYTES && len <= data.len()).then_some(len)
}

/// The lengths of the id and the account of an event whose header is there.
fn name_lens(data: &[u8]) -> (usize, usize) {
    let len = |at: usize| usize::from(u16::from_le_bytes([data[at], data[at + 1]]));
    (len(4), len(6))
}

/// Half of a SHA-256: over the stored form of an event, or over the common part of its repetitions.
pub(crate) type Digest = [u8; 16];

/// Maximum length of a payload in bytes.
pub const MAX_PAYLOAD_BYTES: usize = 64 << 20;

/// Maximum length of an account, and of every part of an id, in bytes. An id has at most two of them and a number.
const MAX_NAME_BYTES: usize = 4096;

const HEADER_BYTES: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(events: &[NewEvent]) -> Batch {
        let mut data = Vec::new();
        events.iter().for_each(|event| event.encode(&mut data));
        Batch { first: 7, appended_micros: 1, data: data.into() }
    }

    fn event(number: u64) -> NewEvent {
        let id = EventId::of_commit("did:web:a.test", &number.to_string());
        NewEvent::new(id, "did:web:a.test", format!("{{\"n\":{number}}}")).unwrap()
    }

    #[test]
    fn a_batch_is_read_as_it_was_written() {
        let new = [event(1), event(22)];
        let batch = batch(&new);
        let stored = batch.events().unwrap();
        let of =
            |event: &Event| (event.position(), event.id().to_owned(), event.payload().to_vec());
        let expected = [
            (7, "did:web:a.test/1".to_owned(), b"{\"n\":1}".to_vec()),
            (8, "did:web:a.test/22".to_owned(), b"{\"n\":22}".to_vec()),
        ];
        assert_eq!(stored.iter().map(of).collect::<Vec<_>>(), expected);
        assert!(stored.iter().all(|event| event.account() == "did:web:a.test"));
        assert_eq!(batch.data.len(), new.iter().map(NewEvent::stored_len).sum::<usize>());
        assert_eq!(digests(&batch.data).unwrap().len(), 2);
    }

    #[test]
    fn every_cut_of_a_batch_is_an_error_or_fewer_events() {
        let whole = batch(&[event(1), event(2)]);
        let first_len = event(1).stored_len();
        for cut in 0..whole.data.len() {
            let part = Batch { data: whole.data.slice(..cut), ..whole.clone() };
            let is_boundary = cut == 0 || cut == first_len;
            assert_eq!(part.events().is_ok(), is_boundary, "{cut}");
            assert_eq!(digests(&part.data).is_some(), is_boundary, "{cut}");
        }
    }

    #[test]
    fn ids_differ_by_kind_and_stay_short_whatever_a_stranger_claims() {
        let did = "did:web:a.test";
        let ids = [
            EventId::of_commit(did, "3k"),
            EventId::of_resync(did, "3k", 7, 0),
            EventId::of_message(did, "3k", 0),
            EventId::of_message("", "https://relay.test", 5),
        ];
        let texts = ids.iter().map(EventId::as_str).collect::<Vec<_>>();
        assert_eq!(
            texts,
            [
                "did:web:a.test/3k",
                "did:web:a.test/3k/7/0",
                "did:web:a.test/3k#0",
                "/https://relay.test#5"
            ]
        );
        let long = "x".repeat(1 << 20);
        let id = EventId::of_message(&long, &long, u64::MAX);
        assert!(id.as_str().len() < 200, "{id}");
        let event = NewEvent::new(id, &long, "{}").unwrap();
        assert_eq!(batch(&[event]).events().unwrap().len(), 1);
    }

    #[test]
    fn a_payload_is_one_line() {
        let new = |payload: &'static str| NewEvent::new(EventId::of_commit("d", "r"), "d", payload);
        assert_eq!(new("").unwrap_err(), InvalidPayload::Empty);
        assert_eq!(new("{}\n").unwrap_err(), InvalidPayload::LineFeed);
        assert!(new("{}").is_ok());
    }
}
