//! Verification of ids and signatures, one event at a time or in batches.

use crypto::SignatureFault;
use crypto::schnorr::{self, KeyRef, SignatureCheck, XOnlyKey};
use kernels::sha256;

use crate::canonical::{self, ControlChars};
use crate::{Event, Value};

/// Why a well-formed event is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EventFault {
    /// The id is not the SHA-256 of the canonical form.
    #[error("the id is not the hash of the event")]
    Id,
    /// The id is the SHA-256 of the canonical form that the [`IdSerialization`] excludes.
    #[error("the id is the hash of the event with {} control characters", .0.name())]
    IdForm(ControlChars),
    /// The signature over the id is not the author's.
    #[error("{0}")]
    Signature(SignatureFault),
}

/// Which canonical forms may make the id of an event that has control characters.
///
/// An event without control characters has one canonical form and is valid under every policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IdSerialization {
    /// Both forms: events of NIP-01's letter and of the clients in use are valid.
    #[default]
    Either,
    /// Only [`ControlChars::Verbatim`], as NIP-01 requires.
    Verbatim,
    /// Only [`ControlChars::Escaped`], as nostr-tools and rust-nostr require.
    Escaped,
}

impl IdSerialization {
    /// All policies.
    pub const ALL: [Self; 3] = [Self::Either, Self::Verbatim, Self::Escaped];

    /// The name on the command line: `either`, `verbatim` or `escaped`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Either => "either",
            Self::Verbatim => ControlChars::Verbatim.name(),
            Self::Escaped => ControlChars::Escaped.name(),
        }
    }

    /// Rejects an id of an excluded `form`; `canonical` is the canonical form of the event in that form.
    fn check(self, form: ControlChars, canonical: &[u8]) -> Result<ControlChars, EventFault> {
        let is_accepted = match (self, form) {
            (Self::Either, _) | (Self::Verbatim, ControlChars::Verbatim) => true,
            (Self::Verbatim, ControlChars::Escaped) => false,
            (Self::Escaped, ControlChars::Escaped) => true,
            (Self::Escaped, ControlChars::Verbatim) => !canonical::has_control_chars(canonical),
        };
        if is_accepted { Ok(form) } else { Err(EventFault::IdForm(form)) }
    }
}

impl Event<'_> {
    /// Verifies the id and the signature; returns the form of the control characters whose hash is the id.
    ///
    /// The form is [`ControlChars::Verbatim`] if both forms are the same.
    ///
    /// # Errors
    /// If the id or the signature is wrong.
    pub fn verify(&self) -> Result<ControlChars, EventFault> {
        self.verify_in(IdSerialization::default(), &mut Vec::new())
    }

    /// Verifies as [`verify`](Self::verify) does, with ids as `ids` requires; `scratch` is reused memory.
    ///
    /// # Errors
    /// If the id or the signature is wrong, or the id is of an excluded form.
    pub fn verify_in(
        &self,
        ids: IdSerialization,
        scratch: &mut Vec<u8>,
    ) -> Result<ControlChars, EventFault> {
        let form = canonical::id_form(self, scratch).ok_or(EventFault::Id)?;
        let form = ids.check(form, scratch)?;
        self.verify_signature()?;
        Ok(form)
    }

    /// Verifies the signature over the id, but not the id.
    ///
    /// # Errors
    /// If the author did not sign the id.
    pub fn verify_signature(&self) -> Result<(), EventFault> {
        let key = XOnlyKey::from_bytes(&self.pubkey);
        let key = key.map_err(|_| EventFault::Signature(SignatureFault::Key))?;
        key.verify(&self.id, &self.sig).map_err(EventFault::Signature)
    }
}

/// Verifies many events; the result of an event has the index of the event.
///
/// Every result equals [`Event::verify`]. Ids are hashed and signatures verified many at a time, in SIMD lanes
/// where the CPU has them, in groups of 512 events or 4 MiB of text that bound the memory.
///
/// ```
/// # use wireproof::nostr::Arena;
/// # use wireproof::nostr::{canonical::ControlChars, verify_many, EventFault, Limits};
/// # use wireproof::nostr::{example, formats::Format};
/// # let arena = Arena::new();
/// # let event = Format::Json.decode(example::JSON.as_bytes(), &arena, &Limits::default())?;
/// let mut forged = event;
/// forged.kind = 7;
/// assert_eq!(verify_many(&[event, forged]), [Ok(ControlChars::Verbatim), Err(EventFault::Id)]);
/// # Ok::<(), wireproof::nostr::DecodeError>(())
/// ```
pub fn verify_many(events: &[Event<'_>]) -> Vec<Result<ControlChars, EventFault>> {
    verify_many_with(events, IdSerialization::default())
}

/// Verifies as [`verify_many`] does, with ids as `ids` requires.
pub fn verify_many_with(
    events: &[Event<'_>],
    ids: IdSerialization,
) -> Vec<Result<ControlChars, EventFault>> {
    let mut results = Vec::with_capacity(events.len());
    let mut scratch = Scratch::default();
    let mut rest = events;
    while !rest.is_empty() {
        let (group, later) = rest.split_at(group_len(rest));
        scratch.verify(group, ids, &mut results);
        rest = later;
    }
    results
}

/// Number of events, at least one, whose canonical forms are in memory together.
fn group_len(events: &[Event<'_>]) -> usize {
    let mut bytes = 0;
    let is_in_group = |event: &&Event<'_>| {
        let is_in_group = bytes < GROUP_BYTES;
        bytes += text_len(event);
        is_in_group
    };
    events.iter().take(GROUP_EVENTS).take_while(is_in_group).count()
}

/// Length of the text of an event in bytes, about the length of its canonical form.
fn text_len(event: &Event<'_>) -> usize {
    let values = event.tags.iter().flat_map(|tag| tag.iter());
    event.content.len() + values.map(Value::text_len).sum::<usize>()
}

/// Memory that is reused from group to group.
#[derive(Default)]
struct Scratch {
    verbatim: Hashes,
    // Of the events whose id does not match the verbatim form.
    escaped: Hashes,
}

impl Scratch {
    fn verify(
        &mut self,
        group: &[Event<'_>],
        ids: IdSerialization,
        results: &mut Vec<Result<ControlChars, EventFault>>,
    ) {
        let forms = self.check_ids(group, ids);
        let checks: Vec<SignatureCheck<'_>> = group.iter().map(check).collect();
        let signatures = schnorr::verify_many(&checks);
        let result = |(form, signature): (Result<ControlChars, EventFault>, Result<(), _>)| {
            form.and_then(|form| signature.map(|()| form).map_err(EventFault::Signature))
        };
        results.extend(forms.into_iter().zip(signatures).map(result));
    }

    /// Checks the ids of a group.
    fn check_ids(
        &mut self,
        group: &[Event<'_>],
        ids: IdSerialization,
    ) -> Vec<Result<ControlChars, EventFault>> {
        self.verbatim.compute(group, ControlChars::Verbatim);
        let check = |(event, (id, canonical)): (&Event<'_>, (&[u8; 32], &[u8]))| {
            if event.id != *id {
                return Err(EventFault::Id);
            }
            ids.check(ControlChars::Verbatim, canonical)
        };
        let mut forms: Vec<_> = group.iter().zip(self.verbatim.iter()).map(check).collect();
        self.check_escaped(group, ids, &mut forms);
        forms
    }

    /// Checks the wrong ids of events with control characters against the escaped form.
    fn check_escaped(
        &mut self,
        group: &[Event<'_>],
        ids: IdSerialization,
        forms: &mut [Result<ControlChars, EventFault>],
    ) {
        let is_other = |(form, (_, canonical)): (&mut Result<_, _>, (_, &[u8]))| {
            *form == Err(EventFault::Id) && canonical::has_control_chars(canonical)
        };
        let others = forms.iter_mut().zip(self.verbatim.iter()).map(is_other);
        let others: Vec<usize> =
            (0..).zip(others).filter_map(|(at, is)| is.then_some(at)).collect();
        if others.is_empty() {
            return;
        }
        let events: Vec<Event<'_>> = others.iter().map(|at| group[*at]).collect();
        self.escaped.compute(&events, ControlChars::Escaped);
        for (at, (id, canonical)) in others.into_iter().zip(self.escaped.iter()) {
            if group[at].id == *id {
                forms[at] = ids.check(ControlChars::Escaped, canonical);
            }
        }
    }
}

/// The canonical forms of many events and their hashes.
#[derive(Default)]
struct Hashes {
    canonical: Vec<u8>,
    // The ends of the events' canonical forms in `canonical`.
    ends: Vec<usize>,
    ids: Vec<[u8; 32]>,
}

impl Hashes {
    fn compute(&mut self, events: &[Event<'_>], controls: ControlChars) {
        self.canonical.clear();
        self.ends.clear();
        for event in events {
            canonical::write(event, controls, &mut self.canonical);
            self.ends.push(self.canonical.len());
        }
        let mut ids = std::mem::take(&mut self.ids);
        ids.resize(events.len(), [0; 32]);
        let messages: Vec<&[u8]> = self.forms().collect();
        sha256::digest_many_into(&messages, &mut ids);
        self.ids = ids;
    }

    /// The hash and the canonical form of every event.
    fn iter(&self) -> impl Iterator<Item = (&[u8; 32], &[u8])> {
        self.ids.iter().zip(self.forms())
    }

    fn forms(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |end| &self.canonical[std::mem::replace(&mut start, *end)..*end])
    }
}

fn check<'e>(event: &'e Event<'_>) -> SignatureCheck<'e> {
    SignatureCheck { message: &event.id, signature: &event.sig, key: KeyRef::Bytes(&event.pubkey) }
}

/// Maximum number of events whose canonical forms are in memory together.
const GROUP_EVENTS: usize = 512;

/// Length of their text in bytes after which a group ends.
const GROUP_BYTES: usize = 4 << 20;
