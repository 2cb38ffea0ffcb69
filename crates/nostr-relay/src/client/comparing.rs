//! Comparisons with known events, and the requests for missing ones.

use std::sync::Arc;

use nostr::Filter;
use nostr::negentropy::Items;

use super::{Client, KnownEvents, Stage, now_seconds};
use crate::comparison::{self, Comparison};
use crate::item::{RelayError, RelayNotice};
use crate::message::{self, Reason};

impl Client {
    pub(super) fn compare_second(&mut self, filter: &Filter, known: Items) {
        let comparison = Comparison::new(Arc::new(known), &self.options);
        let subscription = self.new_subscription();
        let first = message::compare_open(&subscription, filter, &comparison.open());
        self.outgoing.push_back(first);
        self.stage = Stage::ComparingSecond { subscription, comparison };
    }

    pub(super) fn give_up_comparison(&mut self) {
        self.walk.not_compared();
        self.request_next();
    }

    /// Handles the failure of a comparison.
    pub(super) fn handle_compare_failed(&mut self, reason: Reason) {
        if let Stage::ComparingSecond { .. } = self.stage {
            self.give_up_comparison();
        } else if !self.answers_refusal(&reason) {
            self.fail(RelayError::NotCompared(reason.to_string()));
        }
    }

    pub(super) fn start_comparison(&mut self) {
        let Some(known) = self.options.known.clone() else { return };
        let comparison = Comparison::new(known, &self.options);
        let subscription = self.new_subscription();
        let filter = Filter { limit: None, ..self.filter.clone() };
        let first = message::compare_open(&subscription, &filter, &comparison.open());
        self.outgoing.push_back(first);
        self.known = KnownEvents::Comparing(comparison, now_seconds());
        self.stage = Stage::Comparing { subscription };
    }

    pub(super) fn handle_comparison(&mut self, received: &[u8]) {
        if let Stage::ComparingSecond { .. } = self.stage {
            return self.continue_second(received);
        }
        let Stage::Comparing { subscription } = &self.stage else { return };
        let KnownEvents::Comparing(comparison, started) = &mut self.known else { return };
        let started = *started;
        match comparison.receive(received) {
            Ok(comparison::Step::Send(next)) => {
                self.outgoing.push_back(message::compare_next(subscription, &next));
            }
            Ok(comparison::Step::Done) => {
                self.outgoing.push_back(message::compare_close(subscription));
                let KnownEvents::Comparing(comparison, _) =
                    std::mem::replace(&mut self.known, KnownEvents::Complete)
                else {
                    return;
                };
                let rounds = comparison.rounds();
                let missing = comparison.into_missing();
                self.notify(RelayNotice::Compared { rounds, missing: missing.len() });
                self.known = KnownEvents::Fetching(missing, started);
                self.fetch_next();
            }
            Err(reason) => self.fail(RelayError::NotCompared(reason)),
        }
    }

    /// Handles a message of the comparison of one second.
    fn continue_second(&mut self, received: &[u8]) {
        let Stage::ComparingSecond { subscription, comparison } = &mut self.stage else { return };
        match comparison.receive(received) {
            Ok(comparison::Step::Send(next)) => {
                self.outgoing.push_back(message::compare_next(subscription, &next));
            }
            Ok(comparison::Step::Done) => {
                self.outgoing.push_back(message::compare_close(subscription));
                let stage = std::mem::replace(&mut self.stage, Stage::Offline);
                let Stage::ComparingSecond { comparison, .. } = stage else { return };
                self.walk.compared(comparison.into_ids());
                self.request_next();
            }
            Err(_) => self.give_up_comparison(),
        }
    }

    /// Requests the next missing events, or goes on with those since the comparison.
    pub(super) fn fetch_next(&mut self) {
        let KnownEvents::Fetching(missing, started) = &mut self.known else { return };
        let (started, ids) = (*started, missing.next_group());
        if ids.is_empty() {
            let withheld = missing.withheld();
            self.known = KnownEvents::Complete;
            self.notify(RelayNotice::Fetched { withheld });
            self.withheld = withheld;
            if withheld == 0 {
                self.resume = self.resume.max(Some(started));
            }
            self.complete_at = Some(started);
            return self.request_stored();
        }
        let subscription = self.new_subscription();
        let filter = Filter { ids, ..Filter::default() };
        self.outgoing.push_back(message::request(&subscription, &filter));
        self.stage = Stage::Fetching { subscription };
    }
}
