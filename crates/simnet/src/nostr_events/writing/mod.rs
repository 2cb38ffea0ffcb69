//! What is in an event of this kind, if it is to have this length?
//!
//! References are to events that are there, where there is one, so that a reader may follow them.

mod media;
mod notes;
mod people;
mod private;
mod zaps;

use super::lexicon::{Lexicon, rank};
use super::page::Page;
use crate::hex::hex;
use crate::random::Random;
use crate::schnorr_events::{Author, Draft, Event};

/// Writes an event of `kind` whose JSON has about so many `bytes`.
pub(super) fn write(kind: u16, bytes: usize, created_at: u64, scene: &mut Scene<'_>) -> Draft {
    let mut page = Page::new(kind, bytes);
    let fill: fn(&mut Page, &mut Scene<'_>) = match kind {
        0 => people::profile,
        1 => notes::note,
        3 => people::follows,
        4 => private::message,
        5 => notes::deletion,
        6 => notes::repost,
        7 => notes::reaction,
        42 => notes::channel_message,
        1059 => private::gift_wrap,
        1985 => notes::labels,
        5300 => media::job_request,
        6300 => media::job_result,
        9041 => zaps::goal,
        9734 => zaps::request,
        9735 => zaps::receipt,
        10002 => people::relays,
        30023 => notes::article,
        30311 => media::live_event,
        31234 => private::draft,
        34236 => media::video,
        _ => private::app_data,
    };
    scene.now = created_at;
    fill(&mut page, scene);
    page.into_draft(created_at)
}

/// What somebody who writes knows.
pub(super) struct Scene<'c> {
    random: Random,
    lexicon: &'c Lexicon,
    authors: &'c [Author],
    people: &'c [[u8; 32]],
    earlier: Vec<Reference>,
    now: u64,
}

/// An event that another can refer to.
#[derive(Clone, Copy)]
struct Reference {
    id: [u8; 32],
    pubkey: [u8; 32],
    kind: u16,
}

impl<'c> Scene<'c> {
    pub(super) fn new(
        random: Random,
        lexicon: &'c Lexicon,
        authors: &'c [Author],
        people: &'c [[u8; 32]],
    ) -> Self {
        Self { random, lexicon, authors, people, earlier: Vec::new(), now: 0 }
    }

    /// Lets later events refer to this one.
    pub(super) fn remember(&mut self, event: &Event) {
        let Event { id, pubkey, draft, .. } = event;
        self.earlier.push(Reference { id: *id, pubkey: *pubkey, kind: draft.kind });
    }

    /// An event of before: two in three times one that is there.
    fn about(&mut self) -> About {
        let (count, random) = (self.earlier.len(), &mut self.random);
        let seen = count > 0 && random.chance(2, 3);
        let Reference { id, pubkey, kind } = match seen {
            true => self.earlier[count - 1 - rank(count, random)],
            false => {
                let pubkey = self.people[rank(self.people.len(), random)];
                Reference { id: random.bytes32(), pubkey, kind: 1 }
            }
        };
        About { id: hex(&id), pubkey: hex(&pubkey), kind: kind.to_string() }
    }

    /// Somebody.
    fn person(&mut self) -> String {
        hex(&self.people[rank(self.people.len(), &mut self.random)])
    }

    /// The relay that an event or a person is said to be found on.
    fn relay(&mut self) -> &'c str {
        self.lexicon.relay(&mut self.random)
    }

    fn word(&mut self) -> &'c str {
        self.lexicon.word(&mut self.random)
    }

    /// Text that fills a page, but for some bytes.
    fn prose(&mut self, bytes: usize) -> String {
        self.lexicon.prose(&mut self.random, bytes)
    }

    /// The JSON of a signed event by somebody, of about so many bytes.
    fn event(&mut self, kind: u16, bytes: usize) -> (Event, String) {
        let draft = write(kind, bytes, self.now - self.random.below(5_000), self);
        let author = &self.authors[rank(self.authors.len(), &mut self.random)];
        let event = author.sign(draft);
        let json = event.to_json();
        (event, json)
    }

    /// 32 bytes of no meaning, in hexadecimal.
    fn hex32(&mut self) -> String {
        hex(&self.random.bytes32())
    }
}

/// What a tag says of an event, in digits.
struct About {
    id: String,
    pubkey: String,
    kind: String,
}
