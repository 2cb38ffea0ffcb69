//! The requests for stored events, page by page, and the relay's refusals.

use nostr::Filter;

use super::{Client, Stage, now_seconds};
use crate::item::{RelayError, RelayNotice};
use crate::message::{self, Hint, Reason};
use crate::walk::{Gap, Step, Walk};
use net::websocket::SocketError;

impl Client {
    pub(super) fn handle_end_of_stored(&mut self, subscription: &str, hint: Option<Hint>) {
        if !self.is_ours(subscription) {
            return self.notify(RelayNotice::UnknownSubscription);
        }
        self.socket.record_progress();
        match &self.stage {
            // Said twice.
            _ if !self.is_awaited(subscription) => {}
            Stage::Fetching { .. } => {
                self.outgoing.push_back(message::close(subscription));
                self.answered += 1;
                self.fetch_next();
            }
            Stage::Stored { .. } => self.end_page(subscription, hint),
            _ => {}
        }
    }

    /// Requests the next page, if there may be other events.
    fn end_page(&mut self, subscription: &str, hint: Option<Hint>) {
        self.refusals = 0;
        self.answered += u64::from(!self.walk.is_resuming());
        self.walk.end_page(hint);
        let is_lasting = self.lasting.as_deref() == Some(subscription);
        if !is_lasting {
            self.lost_beside = 0;
        }
        // Where there is one subscription at a time, it lasts once there is nothing more to request.
        if !is_lasting || (self.is_one_at_a_time && !self.walk.is_done()) {
            self.outgoing.push_back(message::close(subscription));
            self.lasting = self.lasting.take().filter(|_| !is_lasting);
        }
        self.request_next();
    }

    /// Why stored events may be missing.
    pub(super) fn gap(&self) -> Option<Gap> {
        let unreadable = (self.unreadable > 0).then_some(Gap::Unreadable(self.unreadable));
        let withheld = (self.withheld > 0).then_some(Gap::Withheld(self.withheld));
        self.walk.gap().cloned().or(withheld).or(unreadable)
    }

    fn go_live(&mut self) {
        (self.stage, self.is_walking, self.is_limit_met) = (Stage::Live, false, true);
        let gap = self.gap();
        if gap.is_none() {
            self.resume = self.resume.max(self.latest_stored);
        }
        if self.filter.limit.is_some() {
            self.complete_at.get_or_insert_with(now_seconds);
        }
        let resume = self.resume.filter(|_| gap.is_none());
        self.notify(RelayNotice::EndOfStored { resume, gap });
    }

    /// Begins with the requests for stored events, or continues them on another connection.
    pub(super) fn request_stored(&mut self) {
        if self.is_walking {
            self.walk.reconnect(self.overlap_seconds())
        } else {
            let limit = self.filter.limit.filter(|_| !self.is_limit_met);
            let filter = Filter { since: self.since(), limit, ..self.filter.clone() };
            let now = i64::try_from(now_seconds()).unwrap_or(i64::MAX);
            self.walk = Walk::new(filter, now);
            (self.is_walking, self.unreadable) = (true, 0);
        }
        self.request_next();
    }

    /// Makes the next request for stored events.
    pub(super) fn request_next(&mut self) {
        let is_single = self.is_one_at_a_time || self.options.stored_only;
        let step = self.walk.next();
        let is_last = step.is_none() && self.lasting.is_none() && !self.options.stored_only;
        let step = if is_last {
            self.walk.join(self.overlap_seconds());
            self.walk.next()
        } else {
            step
        };
        match step {
            Some(Step::Request(filter)) => {
                let subscription = self.new_subscription();
                self.outgoing.push_back(message::request(&subscription, &filter));
                if self.lasting.is_none() && (is_last || !is_single) {
                    self.lasting = Some(subscription.clone());
                }
                self.stage = Stage::Stored { subscription };
            }
            Some(Step::Compare(filter, known)) => self.compare_second(&filter, known),
            None => self.go_live(),
        }
    }

    pub(super) fn handle_closed(&mut self, subscription: &str, reason: Reason) {
        if !self.is_ours(subscription) {
            return self.notify(RelayNotice::UnknownSubscription);
        }
        let is_lasting = self.lasting.as_deref() == Some(subscription);
        let is_awaited = self.is_awaited(subscription);
        // Some relays say it of a subscription that the client has ended.
        if !is_awaited && !is_lasting {
            return;
        }
        self.notify(RelayNotice::Closed(reason.clone()));
        let is_beside = self.lasting.is_some() && !is_lasting;
        self.lasting = self.lasting.take().filter(|_| !is_lasting);
        let is_stored = matches!(self.stage, Stage::Stored { .. });
        let is_second = matches!(self.stage, Stage::ComparingSecond { .. });
        if is_second && is_awaited {
            self.give_up_comparison();
        } else if self.answers_refusal(&reason) {
        } else if let Stage::Comparing { .. } = self.stage {
            self.fail(RelayError::NotCompared(reason.to_string()));
        } else if (is_stored || is_second) && !is_awaited {
            // The relay ends the older of two subscriptions.
            self.is_one_at_a_time = true;
        } else if is_stored && is_beside {
            // It may allow one at a time.
            self.request_alone();
        } else if is_stored && self.walk.shrink_pages() {
            self.walk.retry();
            self.request_next();
        } else if is_stored && reason.prefix != "rate-limited" && self.walk.give_up_proof() {
            self.request_next();
        } else {
            self.handle_refusal(reason);
        }
    }

    /// Ends the subscription that lasts, and repeats the request that was refused next to it.
    fn request_alone(&mut self) {
        self.is_one_at_a_time = true;
        if let Some(lasting) = self.lasting.take() {
            self.outgoing.push_back(message::close(&lasting));
        }
        self.walk.retry();
        self.request_next();
    }

    /// Ends the relay, if it refuses the request for good; otherwise the connection, and the next one follows after a growing delay.
    fn handle_refusal(&mut self, reason: Reason) {
        // A request that was answered before may be answered again.
        let was_answered = matches!(self.stage, Stage::Live);
        self.refusals += u32::from(reason.is_final());
        let max = if reason.is_permission() || was_answered { MAX_REFUSALS } else { 1 };
        if reason.is_final() && self.refusals >= max {
            self.fail(RelayError::Refused(reason))
        } else {
            self.disconnect(SocketError::Ended("CLOSED".to_owned()))
        }
    }
}

/// Refusals in a row for want of a permission, after which a relay is given up.
const MAX_REFUSALS: u32 = 3;
