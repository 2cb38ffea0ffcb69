//! An accepted text comes back as it was, with the right parts.

use atproto::syntax::{
    AtIdentifier, AtIdentifierBuf, AtUri, AtUriBuf, CidText, CidTextBuf, Datetime, DatetimeBuf,
    Did, DidBuf, Handle, HandleBuf, Language, LanguageBuf, Nsid, NsidBuf, RecordKey, RecordKeyBuf,
    RepoPath, RepoPathBuf, SyntaxError, Tid, Uri, UriBuf,
};

/// Parses `text` both ways, and answers the borrowed form.
macro_rules! parsed {
    ($Borrowed:ident, $Owned:ident, $text:expr) => {{
        let borrowed = $Borrowed::parse($text);
        let owned: Result<$Owned, SyntaxError> = $text.parse();
        assert_eq!(borrowed.map($Borrowed::to_buf), owned);
        if let Ok(borrowed) = borrowed {
            assert_eq!(borrowed.to_string(), $text);
        }
        within($text, &borrowed);
        borrowed.ok()
    }};
}

/// Runs the target on one input.
pub(crate) fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    names(text);
    references(text);
    rest(text);
}

fn names(text: &str) {
    if let Some(did) = parsed!(Did, DidBuf, text) {
        assert_eq!(format!("did:{}:{}", did.method(), did.identifier()), text);
    }
    if let Some(handle) = parsed!(Handle, HandleBuf, text) {
        let normal = handle.to_normalized();
        assert_eq!(Handle::parse(normal.as_str()), Ok(normal.as_handle()));
        assert_eq!(normal.as_handle().to_normalized(), normal);
    }
    if let Some(nsid) = parsed!(Nsid, NsidBuf, text) {
        assert_eq!(format!("{}.{}", nsid.authority(), nsid.name()), text);
        let normal = nsid.to_normalized();
        assert_eq!(Nsid::parse(normal.as_str()), Ok(normal.as_nsid()));
    }
    if let Some(identifier) = parsed!(AtIdentifier, AtIdentifierBuf, text) {
        assert_ne!(identifier.as_did().is_some(), identifier.as_handle().is_some());
    }
}

fn references(text: &str) {
    if let Some(path) = parsed!(RepoPath, RepoPathBuf, text) {
        assert_eq!(format!("{}/{}", path.collection(), path.record_key()), text);
        assert_eq!(RepoPath::from_bytes(text.as_bytes()), Ok(path));
        let uri = format!("at://a.test/{text}");
        assert_eq!(AtUri::parse(&uri).unwrap().record_key(), Some(path.record_key()));
    }
    if let Some(uri) = parsed!(AtUri, AtUriBuf, text) {
        assert!(AtIdentifier::parse(uri.authority().as_str()).is_ok());
        assert!(uri.collection().is_some() || uri.record_key().is_none());
        assert!(Uri::parse(text).is_ok());
        let normal = uri.to_normalized();
        assert_eq!(AtUri::parse(normal.as_str()), Ok(normal.as_at_uri()));
    }
    if let Some(uri) = parsed!(Uri, UriBuf, text) {
        assert_eq!(format!("{}:{}", uri.scheme(), uri.scheme_specific()), text);
    }
    parsed!(RecordKey, RecordKeyBuf, text);
}

fn rest(text: &str) {
    if let Some(datetime) = parsed!(Datetime, DatetimeBuf, text) {
        let normal = datetime.to_normalized();
        let millis = datetime.unix_micros().div_euclid(1000) * 1000;
        assert_eq!(Datetime::parse(normal.as_str()).unwrap().unix_micros(), millis);
    }
    if let Some(language) = parsed!(Language, LanguageBuf, text) {
        assert_eq!(language.subtags().collect::<Vec<_>>().join("-"), text);
    }
    if let Some(Ok(cid)) = parsed!(CidText, CidTextBuf, text).map(CidText::to_cid) {
        assert_eq!(cid.to_string(), text);
    }
    let tid = Tid::parse(text);
    within(text, &tid);
    if let Ok(tid) = tid {
        assert_eq!(tid.to_string(), text);
        assert_eq!(Tid::from_u64(tid.as_u64()), tid);
    }
}

/// A refusal points into the text or right behind it.
fn within<T>(text: &str, parsed: &Result<T, SyntaxError>) {
    if let Err(error) = parsed {
        assert!(error.offset as usize <= text.len(), "{error}");
    }
}
