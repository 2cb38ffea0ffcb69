//! The line of an archived event, or of one in the window: as for a followed event, with the stored verdict and key.

use archive::ArchivedEvent;
use atproto::event::{Decoder, Event, Options};
use delivery::EventId;
use events::{Body, Claims, Code, EventBody, Line, LineWriter, Verdict};

use follower::line::write_op;

/// Writes the lines of archived events.
#[derive(Debug)]
pub struct ArchivedLines {
    decoder: Decoder,
    is_live: bool,
}

impl Default for ArchivedLines {
    fn default() -> Self {
        Self { decoder: Decoder::new(Options::default()), is_live: false }
    }
}

impl ArchivedLines {
    /// Lines of events that a source has just sent.
    pub(crate) fn live() -> Self {
        Self { is_live: true, ..Self::default() }
    }

    /// Appends the line of an event with its number in the archive, and returns its id.
    ///
    /// # Errors
    /// If its frame cannot be decoded: the archive was changed.
    pub fn write(
        &mut self,
        archived: &ArchivedEvent<'_>,
        number: i64,
        line: &mut Vec<u8>,
    ) -> Result<EventId, String> {
        let decoded = self.decoder.decode(archived.frame);
        let event =
            decoded.map_err(|why| format!("the event {number} cannot be decoded: {why}"))?;
        Ok(write_event(archived, number, self.is_live, &event, line))
    }
}

fn write_event(
    archived: &ArchivedEvent<'_>,
    number: i64,
    is_live: bool,
    event: &Event<'_>,
    lines: &mut Vec<u8>,
) -> EventId {
    let id = id(archived, number, event);
    let body = EventBody {
        arrival: Some(number),
        host: archived.host.into(),
        seq: archived.seq,
        repeated: false,
        did: archived.did.map(Into::into),
        claims: Claims::from(event),
        key: archived.key.map(Into::into),
        message: None,
        verified_against: None,
        ops: None,
        proof: None,
        frame: matches!(event, Event::Unknown(_)).then(|| archived.frame.into()),
    };
    let line = Line {
        id: Some(id.as_str().into()),
        live: Some(is_live),
        verdict: verdict(archived),
        code: archived.verdict.into(),
        body: Body::Event(body),
    };
    let mut writer = LineWriter::begin(lines, &line);
    if let Event::Commit(commit) = event
        && archived.is_verified()
    {
        writer.begin_ops();
        commit.ops.iter().for_each(|op| write_op(&mut writer, op));
    }
    writer.end(&line);
    drop(line);
    id
}

/// The verdict of the time, of which archives have the code.
fn verdict(archived: &ArchivedEvent<'_>) -> Verdict {
    match Code::from(archived.verdict) {
        _ if archived.is_verified() => Verdict::Verified,
        Code::Unchecked => Verdict::Unchecked,
        Code::NotAsked => Verdict::NotAsked,
        Code::EventStaleRev | Code::EventInactive => Verdict::Ignored,
        Code::SignatureNoKey => Verdict::UnknownKey,
        _ => Verdict::Refused,
    }
}

/// The id that the line of the event has from an outbox.
fn id(archived: &ArchivedEvent<'_>, number: i64, event: &Event<'_>) -> EventId {
    let did = archived.did.unwrap_or_default();
    match event {
        Event::Commit(commit) if archived.is_verified() => EventId::of_commit(did, commit.rev),
        _ => {
            let seq = archived.seq.unwrap_or(number);
            EventId::of_message(did, archived.host, u64::try_from(seq).unwrap_or_default())
        }
    }
}

#[cfg(test)]
mod tests {
    use atproto::corpus;

    use super::*;

    /// The writer of the hot path and `serde` agree on captured events, with every verdict that archives have.
    #[test]
    fn lines_of_captured_frames_are_what_their_type_reads_and_writes() {
        let file = conformance::fixtures!(Captures).bytes("pds/frames.bin");
        let frames = corpus::read(&file).unwrap();
        let mut lines = ArchivedLines::default();
        let mut operations = 0;
        for (number, frame) in (1..).zip(&frames) {
            for verdict in ["verified", "unchecked", "not-asked"] {
                let archived = ArchivedEvent {
                    did: Some("did:web:a.test"),
                    arrival: number,
                    host: "https://pds.example",
                    seq: Some(number),
                    kind: "",
                    received: number,
                    verdict,
                    key: (verdict == "verified").then_some("did:key:z"),
                    judge: "",
                    frame,
                };
                let (mut line, mut again) = (Vec::new(), Vec::new());
                lines.write(&archived, number, &mut line).unwrap();
                let typed = Line::parse(&line).unwrap();
                operations += typed.operations().count();
                typed.append(&mut again);
                assert!(again == line, "{}", String::from_utf8_lossy(&line));
            }
        }
        assert!(operations > 1_000, "{operations}");
    }
}
