//! Names of accounts and records as people have them: copied from an app, a URL or a sentence.

use atproto::syntax::{AtIdentifier, Nsid, RecordKey};

use crate::failure::Failure;

/// Parses a handle or a DID. Spaces around it, `@handle`, `at://handle` and the URL of a profile are allowed.
///
/// # Errors
/// If it is neither; with the nearest fix.
pub fn account(text: &str) -> Result<AtIdentifier<'_>, Failure> {
    let name = bare_account(text);
    AtIdentifier::parse(name).map_err(|error| {
        let reason = hint(name).map_or_else(|| format!(": {error}"), |hint| format!("; {hint}"));
        Failure::Usage(format!("{text}: neither a DID nor a handle{reason}"))
    })
}

/// The name of an account in a text, without the text around it.
pub fn bare_account(text: &str) -> &str {
    let text = trim(text);
    let text = profile(text).unwrap_or(text);
    let text = text.strip_prefix("at://").map_or(text, |rest| rest.trim_end_matches('/'));
    text.strip_prefix('@').unwrap_or(text)
}

/// A record by its account and path.
#[derive(Clone, Copy, Debug)]
pub struct RecordName<'n> {
    /// The account.
    pub who: AtIdentifier<'n>,
    /// The collection.
    pub collection: Nsid<'n>,
    /// The key of the record.
    pub rkey: RecordKey<'n>,
}

/// Parses the name of a record: `at://ACCOUNT/COLLECTION/RKEY`, the same without `at://`, or the URL of a post.
///
/// # Errors
/// If it is none.
pub fn record(text: &str) -> Result<RecordName<'_>, Failure> {
    let usage = |what: &dyn std::fmt::Display| Failure::Usage(format!("{text}: {what}"));
    let name = trim(text);
    let parts = match post(name) {
        Some((who, rkey)) => [who, POST, rkey],
        None => {
            let name = name.strip_prefix("at://").unwrap_or(name);
            let mut parts = name.splitn(3, '/');
            let [who, collection, rkey] = [(); 3].map(|()| parts.next().unwrap_or_default());
            if rkey.is_empty() {
                return Err(usage(
                    &"not the name of a record: expected at://ACCOUNT/COLLECTION/RKEY; `wireproof ls` lists the records of an account",
                ));
            }
            [who, collection, rkey]
        }
    };
    let [who, collection, rkey] = parts;
    Ok(RecordName {
        who: account(who)?,
        collection: Nsid::parse(collection).map_err(|error| usage(&error))?,
        rkey: RecordKey::parse(rkey).map_err(|error| usage(&error))?,
    })
}

/// The text without spaces and the invisible marks of direction that apps put around names.
fn trim(text: &str) -> &str {
    let is_invisible = |letter: char| matches!(letter, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
    text.trim_matches(|letter: char| letter.is_whitespace() || is_invisible(letter))
}

/// The account in the URL of a profile: `https://bsky.app/profile/ACCOUNT`.
fn profile(text: &str) -> Option<&str> {
    let rest = path_after_profile(text)?;
    rest.split('/').next()
}

/// The account and the key in the URL of a post: `https://bsky.app/profile/ACCOUNT/post/RKEY`.
fn post(text: &str) -> Option<(&str, &str)> {
    let (who, rkey) = path_after_profile(text)?.split_once("/post/")?;
    Some((who, rkey.trim_end_matches('/')))
}

fn path_after_profile(text: &str) -> Option<&str> {
    let text = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"))?;
    let (_, path) = text.split_once('/')?;
    let rest = path.strip_prefix("profile/")?;
    rest.split(['?', '#']).next()
}

/// The text that was probably meant.
fn hint(name: &str) -> Option<String> {
    let is_word = |word: &str| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    if name.starts_with("npub1") || name.starts_with("nprofile1") {
        return Some("that is a name of Nostr: see `wireproof nostr --help`".to_owned());
    }
    if let Some((user, host)) = name.split_once('@').filter(|(user, _)| is_word(user)) {
        return Some(format!("a handle has no `@`: did you mean {user}.{host}?"));
    }
    is_word(name).then(|| format!("a handle has a domain: did you mean {name}.bsky.social?"))
}

/// The collection of posts.
const POST: &str = "app.bsky.feed.post";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_found_in_what_people_copy() {
        for text in [
            "alice.example.com",
            " alice.example.com\n",
            "@alice.example.com",
            "at://alice.example.com",
            "at://alice.example.com/",
            "\u{2068}@alice.example.com\u{2069}",
            "\u{202a}alice.example.com\u{202c}",
            "https://bsky.app/profile/alice.example.com",
            "https://bsky.app/profile/alice.example.com/",
            "https://bsky.app/profile/alice.example.com?ref=x",
            "https://bsky.app/profile/alice.example.com/post/3jzfcijpj2z2a",
        ] {
            assert_eq!(account(text).unwrap().as_str(), "alice.example.com", "{text:?}");
        }
        let did = "did:plc:ewvi7nxzyoun6zhxrhs64oiz";
        assert_eq!(account(&format!("https://bsky.app/profile/{did}")).unwrap().as_str(), did);
        assert_eq!(account(&format!("at://{did}")).unwrap().as_str(), did);
    }

    #[test]
    fn another_text_is_refused_with_the_nearest_fix() {
        for (text, hint) in [
            ("alice", "did you mean alice.bsky.social?"),
            ("@alice", "did you mean alice.bsky.social?"),
            ("alice@example.com", "did you mean alice.example.com?"),
            ("npub10elfcs4fr0l0r8af98jlmgdh9c8tcxjvz9qkw038js35mp4dma8qzvjptg", "wireproof nostr"),
            ("did:plc", "neither a DID nor a handle"),
            ("https://example.com/alice", "neither a DID nor a handle"),
            ("", "neither a DID nor a handle"),
        ] {
            let failure = account(text).unwrap_err();
            assert!(failure.message().unwrap().contains(hint), "{text}: {failure:?}");
        }
    }

    #[test]
    fn a_record_is_named_by_uri_by_path_or_by_the_url_of_a_post() {
        for text in [
            "at://alice.example.com/app.bsky.feed.post/3jzfcijpj2z2a",
            "alice.example.com/app.bsky.feed.post/3jzfcijpj2z2a",
            "@alice.example.com/app.bsky.feed.post/3jzfcijpj2z2a",
            " https://bsky.app/profile/alice.example.com/post/3jzfcijpj2z2a ",
            "https://bsky.app/profile/alice.example.com/post/3jzfcijpj2z2a?x=1",
        ] {
            let name = record(text).unwrap();
            assert_eq!(name.who.as_str(), "alice.example.com", "{text}");
            assert_eq!(name.collection.as_str(), "app.bsky.feed.post");
            assert_eq!(name.rkey.as_str(), "3jzfcijpj2z2a");
        }
        for text in ["", "alice.example.com", "at://alice.example.com/app.bsky.feed.post", "a/b/c"]
        {
            record(text).unwrap_err();
        }
        let failure = record("alice.example.com/posts/3jzfcijpj2z2a").unwrap_err();
        assert!(failure.message().is_some_and(|text| text.contains("posts")), "{failure:?}");
    }
}
