//! Authentication: the answers to a challenge, and to refusals for want of it.

use super::{Authentication, Client, KnownEvents, Stage, now_seconds};
use crate::item::{RelayError, RelayNotice};
use crate::message::{self, Reason};
use net::remote_text::{MAX_MESSAGE_CHARS, sanitize};
use net::websocket::SocketError;

impl Client {
    pub(super) fn handle_challenge(&mut self, challenge: String) {
        let shown = sanitize(&challenge, MAX_MESSAGE_CHARS);
        self.notify(RelayNotice::AuthRequested { challenge: shown });
        self.authentication = Authentication { challenge: Some(challenge), ..Default::default() };
        if let Stage::Authenticating = self.stage {
            self.authenticate();
        }
    }

    /// Answers the challenge, once there is one.
    fn authenticate(&mut self) {
        let Some(authenticator) = &self.options.authenticator else { return };
        let Some(challenge) = &self.authentication.challenge else { return };
        let now = i64::try_from(now_seconds()).unwrap_or(i64::MAX);
        let (id, event) = authenticator.answer(self.url.as_str(), challenge, now);
        self.outgoing.push_back(message::authenticate(&event));
        self.authentication.sent = Some(id);
    }

    pub(super) fn handle_accepted(&mut self, id: &str, is_accepted: bool, reason: Reason) {
        if self.authentication.sent.as_deref() != Some(id) {
            return;
        }
        self.authentication.sent = None;
        match is_accepted {
            true => {
                self.authentication.is_accepted = true;
                self.notify(RelayNotice::Authenticated);
                if let Stage::Authenticating = self.stage {
                    self.start();
                }
            }
            false if ["error", "rate-limited"].contains(&&*reason.prefix) => {
                self.disconnect(SocketError::Ended("OK false".to_owned()));
            }
            false => self.fail(RelayError::Refused(reason)),
        }
    }

    /// Authenticates if a request was refused for lack of it. Returns whether it was.
    pub(super) fn answers_refusal(&mut self, reason: &Reason) -> bool {
        let is_lacking = match &*reason.prefix {
            "auth-required" => true,
            "restricted" => self.authentication.challenge.is_some(),
            _ => false,
        };
        let can_answer = self.options.authenticator.is_some() && !self.authentication.is_accepted;
        if !is_lacking || !can_answer {
            return false;
        }
        if let Some(lasting) = self.lasting.take() {
            self.outgoing.push_back(message::close(&lasting));
        }
        if let KnownEvents::Comparing(..) = self.known {
            self.known = KnownEvents::Due;
        }
        self.stage = Stage::Authenticating;
        self.authenticate();
        true
    }
}
