//! A relay's hint about further events at the end of an answer (NIP-67), and when it is believed.
//!
//! - `more`: the answer was cut off. That costs requests; where none of them brings an event, it is [`Gap::Unsent`].
//! - `finish`: nothing more is requested from the range of the answer, unless the answer itself speaks against it
//!   ([`Walk::believed`]). It is then an answer without a hint.
//! - nothing, both of them, or an unknown word: nothing is known, and other requests prove which events are missing.
//!
//! A relay is a stranger, and NIP-67 is its word alone. So these hold whatever it says:
//!
//! - A hint drops no event. It decides about requests: the events of an answer are passed on before it arrives, and events that come
//!   after it are passed on as new ones.
//! - A hint does not raise the time up to which events are received: that is the latest creation time of a received event, and no
//!   later than now. More requests can only raise it.
//! - A gap that was noted remains, and the checkpoint with it.
//! - A relay that hides events by a wrong `finish` hides them without it too, if it answers all requests as one that does not have
//!   them. That run ends with the same events and the same checkpoint. `finish` adds an end where an honest relay has no other proof,
//!   as for a store of one second.
//!
//! A wrong `finish` loses events of an honest relay that has a fault. The likely ones are that it takes the limit of the request, or the
//! limit of its own store, for the end of its events; an answer that is as large as either is not believed.
//!
//! [`Gap::Unsent`]: super::Gap::Unsent

use super::Walk;
use super::task::{Edge, Page, Task};
use crate::message::Hint;

impl Walk {
    /// The hint, unless the answer speaks against it: `finish` after as many events as were requested, or as the relay has sent at
    /// once before; or without an event that it sent before and that the range has.
    pub(super) fn believed(&self, hint: Hint, task: &Task, page: &Page) -> Option<Hint> {
        let is_cut = page.count >= page.limit || (1..=page.count).contains(&self.largest);
        let lacks_known = match task {
            Task::Range { edge: Edge::Within(known), .. } => {
                known.iter().any(|id| !page.events.contains_key(id))
            }
            _ => false,
        };
        (hint == Hint::More || !(is_cut || lacks_known)).then_some(hint)
    }
}
