//! Answers to requests for authentication (NIP-42): events that a secret key signs.

use crypto::KeyError;
use crypto::schnorr::{SecretKey, XOnlyKey};
use kernels::hex;
use nostr::canonical::{self, ControlChars};
use nostr::{Arena, OwnedEvent, json};

/// The key that answers a relay which asks who its client is.
#[derive(Clone, Debug)]
pub struct Authenticator {
    secret: SecretKey,
}

impl Authenticator {
    /// Answers with this secret key.
    ///
    /// # Errors
    /// If the bytes are no secret key.
    pub fn new(secret: &[u8; 32]) -> Result<Self, KeyError> {
        Ok(Self { secret: SecretKey::from_bytes(secret)? })
    }

    /// The public key that a relay sees.
    pub fn public_key(&self) -> XOnlyKey {
        self.secret.public_key()
    }

    /// The id and the JSON of the event that answers a challenge of a relay, at a time in seconds since 1970.
    pub(super) fn answer(&self, relay: &str, challenge: &str, now: i64) -> (String, String) {
        let tag = |name: &str, value: &str| vec![name.to_owned(), value.to_owned()];
        let mut event = OwnedEvent {
            id: [0; 32],
            pubkey: self.public_key().to_bytes(),
            created_at: now,
            kind: AUTHENTICATION,
            tags: vec![tag("relay", relay), tag("challenge", challenge)],
            content: String::new(),
            sig: [0; 64],
        };
        let (arena, mut bytes) = (Arena::new(), Vec::new());
        event.id = canonical::id(&event.borrow_in(&arena), ControlChars::Escaped, &mut bytes);
        event.sig = self.secret.sign(&event.id, &[0; 32]);
        bytes.clear();
        json::encode(&event.borrow_in(&arena), &mut bytes);
        (hex::encode(&event.id), String::from_utf8(bytes).expect("JSON is text"))
    }
}

/// The kind of an answer.
const AUTHENTICATION: u16 = 22_242;

#[cfg(test)]
mod tests {
    use nostr::Limits;

    use super::*;

    #[test]
    fn an_answer_is_a_valid_event_with_the_relay_and_the_challenge() {
        let authenticator = Authenticator::new(&[7; 32]).unwrap();
        let challenge = "a\"b\nc\u{1}";
        let (id, text) = authenticator.answer("wss://relay.example/", challenge, 1_700_000_000);
        let arena = Arena::new();
        let event = json::decode(text.as_bytes(), &arena, &Limits::default()).unwrap();
        assert!(event.verify().is_ok());
        assert_eq!((hex::encode(&event.id), event.kind), (id, 22_242));
        let tags = event.to_owned().tags;
        assert_eq!(tags, [["relay", "wss://relay.example/"], ["challenge", challenge]]);
        assert_eq!(event.pubkey, authenticator.public_key().to_bytes());
        assert!(Authenticator::new(&[0; 32]).is_err());
        assert!(!format!("{authenticator:?}").contains("0707"));
    }
}
