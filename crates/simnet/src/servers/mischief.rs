//! What a server does to the frames of one reader when faults are switched on.

use tokio_tungstenite::tungstenite::Message;

use super::fault::{Fault, Faults};
use super::network::Network;
use super::spec::Server;
use super::teller::Tongue;
use crate::random::{Random, Seed};

/// The frames of one reader.
pub(super) struct Mischief<'n> {
    faults: &'n Faults,
    server: Server,
    random: Random,
    /// How many frames this reader was to be sent.
    frames: u64,
    /// Messages that wait for the next ones to overtake them.
    held: Vec<Message>,
}

/// What becomes of the stream behind a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Twist {
    None,
    /// It ends in order.
    End,
    /// It is silent from now on.
    Stall,
}

impl<'n> Mischief<'n> {
    pub(super) fn new(network: &'n Network, server: Server) -> Self {
        let random = Seed::new(network.spec.seed, "mischief").stream(0);
        Self { faults: &network.faults, server, random, frames: 0, held: Vec::new() }
    }

    /// Does to the messages of one event what is switched on.
    pub(super) fn twist(&mut self, tongue: &dyn Tongue, messages: &mut Vec<Message>) -> Twist {
        if messages.is_empty() || (self.faults.are_off() && self.held.is_empty()) {
            return Twist::None;
        }
        let held = std::mem::take(&mut self.held);
        self.spoil(tongue, messages);
        messages.extend(held);
        self.frames += 1;
        self.end(tongue, messages)
    }

    fn spoil(&mut self, tongue: &dyn Tongue, messages: &mut Vec<Message>) {
        if self.hit(Fault::WrongMessage).is_some() {
            messages.iter_mut().for_each(swap_type);
        }
        if self.hit(Fault::RepeatedSeq).is_some() {
            messages.extend_from_within(..);
        }
        if self.hit(Fault::MissingSeq).is_some() {
            messages.clear();
        }
        if self.hit(Fault::ReversedSeq).is_some() {
            self.held = std::mem::take(messages);
        }
        if let Some(bytes) = self.hit(Fault::OversizedFrame) {
            messages.insert(0, tongue.raw(vec![b' '; bytes as usize]));
        }
        if let Some(bytes) = self.hit(Fault::GarbageFrame) {
            let garbage = (0..bytes).map(|_| self.random.next_u64() as u8).collect();
            messages.insert(0, tongue.raw(garbage));
        }
        if self.hit(Fault::UnknownKind).is_some() {
            messages.insert(0, tongue.unknown(false));
        }
        if self.hit(Fault::UnknownOperation).is_some() {
            messages.insert(0, tongue.unknown(true));
        }
    }

    fn end(&mut self, tongue: &dyn Tongue, messages: &mut Vec<Message>) -> Twist {
        if self.hit(Fault::ErrorFrame).is_some() {
            messages.push(tongue.error("ConsumerTooSlow", "Stream consumer too slow"));
            return Twist::End;
        }
        if self.hit(Fault::Close).is_some() {
            return Twist::End;
        }
        if self.hit(Fault::Stall).is_some() {
            return Twist::Stall;
        }
        Twist::None
    }

    fn hit(&self, fault: Fault) -> Option<u64> {
        let amount = self.faults.strike_nth(self.server, fault, Some(self.frames));
        amount.inspect(|_| self.faults.count(self.server, fault))
    }
}

/// Text for bytes and bytes for text.
fn swap_type(message: &mut Message) {
    *message = match std::mem::replace(message, Message::Binary(Default::default())) {
        Message::Text(text) => Message::Binary(text.into()),
        Message::Binary(bytes) => Message::text(format!("{} bytes", bytes.len())),
        other => other,
    };
}
