//! The line of an event that an archive holds: that of a followed event, with the verdict and the key of the time.

use archive::ArchivedEvent;
use atproto::event::{Decoder, Event, Options};
use delivery::EventId;

use follower::line::{Object, claims, write_op};

/// Writes the lines of archived events.
#[derive(Debug)]
pub(crate) struct ArchivedLines {
    decoder: Decoder,
}

impl Default for ArchivedLines {
    fn default() -> Self {
        Self { decoder: Decoder::new(Options::default()) }
    }
}

impl ArchivedLines {
    /// Appends the line of an event with its number in the archive.
    ///
    /// # Errors
    /// If its frame cannot be decoded: the archive was changed.
    pub(crate) fn write(
        &mut self,
        archived: &ArchivedEvent<'_>,
        number: i64,
        line: &mut Vec<u8>,
    ) -> Result<(), String> {
        let decoded = self.decoder.decode(archived.frame);
        let event =
            decoded.map_err(|why| format!("the event {number} cannot be decoded: {why}"))?;
        write_event(archived, number, &event, line);
        Ok(())
    }
}

fn write_event(archived: &ArchivedEvent<'_>, number: i64, event: &Event<'_>, line: &mut Vec<u8>) {
    let mut object = Object::begin_line(line);
    object.text("id", id(archived, number, event).as_str());
    object.json("live", &false);
    object.json("arrival", &number);
    object.text("host", archived.host);
    if let Some(seq) = archived.seq {
        object.json("seq", &seq);
    }
    object.text("kind", event.kind_name());
    object.optional("did", archived.did);
    claims(&mut object, event);
    object.text("verdict", if archived.is_verified() { "verified" } else { archived.verdict });
    object.text("code", archived.verdict);
    object.optional("key", archived.key);
    match event {
        Event::Commit(commit) if archived.is_verified() => {
            object.key("ops");
            object.line.push(b'[');
            for (number, op) in commit.ops.iter().enumerate() {
                if number > 0 {
                    object.line.push(b',');
                }
                write_op(object.line, op);
            }
            object.line.push(b']');
        }
        Event::Unknown(_) => object.bytes("frame", archived.frame),
        _ => {}
    }
    object.end();
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
