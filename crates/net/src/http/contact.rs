//! A contact for the operators of hosts, named in the `User-Agent` of requests.

use std::str::FromStr;

use reqwest::header::HeaderValue;

use super::USER_AGENT_NAME;

/// The e-mail address or URL of the operator of this program.
///
/// ```
/// use wireproof::net::http::Contact;
/// assert!("ops@example.com".parse::<Contact>().is_ok());
/// assert!("https://example.com/crawler".parse::<Contact>().is_ok());
/// assert!("me".parse::<Contact>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contact(HeaderValue);

/// A text that is no contact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a contact is an e-mail address or a URL of at most {max} visible ASCII characters, without parentheses",
    max = MAX_BYTES
)]
pub struct InvalidContact;

impl Contact {
    /// The value of the header `User-Agent`.
    pub(super) fn user_agent(&self) -> HeaderValue {
        self.0.clone()
    }
}

impl FromStr for Contact {
    type Err = InvalidContact;

    fn from_str(text: &str) -> Result<Self, InvalidContact> {
        let is_visible =
            text.bytes().all(|byte| byte.is_ascii_graphic() && !b"()\\".contains(&byte));
        let is_address =
            text.split_once('@').is_some_and(|(name, host)| !name.is_empty() && !host.is_empty());
        let is_url = ["https://", "http://"]
            .iter()
            .any(|scheme| text.len() > scheme.len() && text.starts_with(scheme));
        if text.len() > MAX_BYTES || !is_visible || !(is_address || is_url) {
            return Err(InvalidContact);
        }
        let value = HeaderValue::from_str(&format!("{USER_AGENT_NAME} (contact: {text})"));
        value.map(Self).map_err(|_| InvalidContact)
    }
}

/// Maximum length in bytes.
const MAX_BYTES: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contact_is_part_of_the_user_agent() {
        let contact: Contact = "ops@example.com".parse().unwrap();
        let expected =
            concat!("wireproof/", env!("CARGO_PKG_VERSION"), " (contact: ops@example.com)");
        assert_eq!(contact.user_agent().to_str().unwrap(), expected);
    }

    #[test]
    fn what_cannot_be_a_contact_or_would_end_the_comment_is_rejected() {
        let long = format!("{}@example.com", "x".repeat(300));
        for text in
            ["", "me", "@host", "name@", "https://", "a b@c", "a)@b", "a\r\n@b", "ä@b", &long]
        {
            assert_eq!(text.parse::<Contact>(), Err(InvalidContact), "{text:?}");
        }
    }
}
