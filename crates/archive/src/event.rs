//! An event as the archive takes it.

/// An event that was judged, in the order of arrival. Bytes and texts are borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchivedEvent<'a> {
    /// The account, if the frame names a valid DID.
    pub did: Option<&'a str>,
    /// The archive's own number: unique, and rising within a writer. It is the time of arrival in microseconds, moved
    /// on where two events would have the same.
    pub arrival: i64,
    /// The host that sent it.
    pub host: &'a str,
    /// The sequence number in the host's stream.
    pub seq: Option<i64>,
    /// The kind of message: `#commit`, `#sync`, `#identity`, `#account`, or the type in the frame.
    pub kind: &'a str,
    /// The time of arrival in microseconds since 1970.
    pub received: i64,
    /// The stable code of the verdict.
    pub verdict: &'a str,
    /// The key under which it was verified, as a did:key.
    pub key: Option<&'a str>,
    /// The program and the policy that judged it.
    pub judge: &'a str,
    /// The frame as it came.
    pub frame: &'a [u8],
}

impl ArchivedEvent<'_> {
    /// Whether the event was verified: it is proved again by `verify`, and its operations are of the tables.
    pub fn is_verified(&self) -> bool {
        is_verified(self.verdict)
    }
}

/// The kind of message that a frame states; empty if its header cannot be read.
pub fn kind(frame: &[u8]) -> &str {
    atproto::event::peek(frame).ok().and_then(|(header, _)| header.kind).unwrap_or_default()
}

/// Whether a verdict says that the event is its account's.
pub(crate) fn is_verified(verdict: &str) -> bool {
    verdict == "verified" || verdict.starts_with("verified/")
}
