//! The requests that a directory answers: paths and parameters, read as the reference server's framework reads them.
//!
//! Letters of paths may be of either case, and a path may end with a slash. A number is read up to its first character that is no
//! digit. A parameter that is repeated counts as missing.

use data_encoding::HEXLOWER_PERMISSIVE;

use crate::time::parse_iso;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// `/`
    Home,
    /// `/_health`
    Health,
    /// `/export`
    Export(Result<Export, BadRequest>),
    /// `/export/stream`
    Stream(Result<Option<u64>, BadRequest>),
    /// `/DID` and the paths below it.
    Account { did: String, view: View },
    /// Any other path.
    Unknown,
    /// A path that cannot be decoded.
    Undecodable(String),
}

/// A page of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Export {
    /// Maximum number of lines.
    pub(crate) count: usize,
    pub(crate) after: After,
}

/// The place at which a page begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    Number(u64),
    /// Microseconds since 1970; `None` begins with the first.
    Time(Option<i64>),
}

/// The answer on an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    Document,
    Data,
    Log,
    Audit,
    Last,
}

impl View {
    /// Number of views.
    pub(crate) const COUNT: usize = Self::Last as usize + 1;
}

/// A parameter that cannot be read: the message of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadRequest(pub(crate) &'static str);

impl Route {
    /// The request for a path and its query.
    pub(crate) fn of(path: &str, query: Option<&str>) -> Self {
        let path = path.strip_prefix('/').unwrap_or(path);
        if path.is_empty() {
            return Self::Home;
        }
        let path = path.strip_suffix('/').unwrap_or(path);
        let segments: Vec<&str> = path.splitn(MAX_SEGMENTS + 1, '/').collect();
        let is = |at: usize, name: &str| {
            segments.get(at).is_some_and(|segment| segment.eq_ignore_ascii_case(name))
        };
        let view = match segments.len() {
            _ if segments.iter().any(|segment| segment.is_empty()) => return Self::Unknown,
            1 if is(0, "_health") => return Self::Health,
            1 if is(0, "export") => return Self::Export(export(query)),
            2 if is(0, "export") && is(1, "stream") => return Self::Stream(cursor(query)),
            1 => View::Document,
            2 if is(1, "data") => View::Data,
            2 if is(1, "log") => View::Log,
            3 if is(1, "log") && is(2, "audit") => View::Audit,
            3 if is(1, "log") && is(2, "last") => View::Last,
            _ => return Self::Unknown,
        };
        match percent_decoded(segments[0]) {
            Some(did) => Self::Account { did, view },
            None => Self::Undecodable(segments[0].to_owned()),
        }
    }
}

fn export(query: Option<&str>) -> Result<Export, BadRequest> {
    let count = match parameter(query, "count") {
        None => MAX_COUNT,
        Some(text) => match integer(&text) {
            Some(count) if count >= 1 => MAX_COUNT.min(usize::try_from(count).unwrap_or(MAX_COUNT)),
            _ => return Err(BadRequest("Invalid count parameter")),
        },
    };
    let after = match parameter(query, "after") {
        None => After::Time(None),
        Some(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => {
            After::Number(text.parse().unwrap_or(u64::MAX))
        }
        Some(text) => match parse_iso(&text) {
            Some(micros) => After::Time(Some(micros)),
            None => return Err(BadRequest("Invalid after parameter")),
        },
    };
    Ok(Export { count, after })
}

fn cursor(query: Option<&str>) -> Result<Option<u64>, BadRequest> {
    let Some(text) = parameter(query, "cursor") else { return Ok(None) };
    let cursor = integer(&text).and_then(|cursor| u64::try_from(cursor).ok());
    cursor.map(Some).ok_or(BadRequest("Invalid cursor parameter"))
}

/// The value of a parameter that is given once; an empty one counts as missing.
fn parameter(query: Option<&str>, name: &str) -> Option<String> {
    let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let mut values = pairs.filter(|(key, _)| key == name).map(|(_, value)| value.into_owned());
    let value = values.next().filter(|value| !value.is_empty());
    if values.next().is_some() { None } else { value }
}

/// The number at the start of a text, after white space and a sign.
fn integer(text: &str) -> Option<i64> {
    let text = text.trim_start();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    if end == 0 {
        return None;
    }
    Some(sign * digits[..end].parse().unwrap_or(i64::MAX))
}

/// The text of a segment; `None` if an escape is not one, or the bytes are not UTF-8.
fn percent_decoded(segment: &str) -> Option<String> {
    let mut pieces = segment.split('%');
    let mut bytes = pieces.next()?.as_bytes().to_vec();
    for piece in pieces {
        let (digits, rest) = piece.as_bytes().split_at_checked(2)?;
        bytes.extend(HEXLOWER_PERMISSIVE.decode(digits).ok()?);
        bytes.extend_from_slice(rest);
    }
    String::from_utf8(bytes).ok()
}

/// Maximum number of lines of a page.
pub(crate) const MAX_COUNT: usize = 1000;

const MAX_SEGMENTS: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn account(did: &str, view: View) -> Route {
        Route::Account { did: did.to_owned(), view }
    }

    #[test]
    fn paths_are_of_either_case_and_may_end_with_a_slash() {
        let cases = [
            ("/", Route::Home),
            ("/_health", Route::Health),
            ("/_HEALTH/", Route::Health),
            ("/did:plc:a", account("did:plc:a", View::Document)),
            ("/did%3Aplc%3aa/", account("did:plc:a", View::Document)),
            ("/x/DATA", account("x", View::Data)),
            ("/x/log", account("x", View::Log)),
            ("/x/log/audit/", account("x", View::Audit)),
            ("/x/log/last", account("x", View::Last)),
            ("/export/data", account("export", View::Data)),
            ("/x/other", Route::Unknown),
            ("/x/log/audit/more", Route::Unknown),
            ("//", Route::Unknown),
            ("/x//", Route::Unknown),
            ("/%zz/data", Route::Undecodable("%zz".to_owned())),
            ("/%ff", Route::Undecodable("%ff".to_owned())),
            ("/%2", Route::Undecodable("%2".to_owned())),
        ];
        for (path, route) in cases {
            assert_eq!(Route::of(path, None), route, "{path}");
        }
    }

    #[test]
    fn a_page_begins_after_a_number_or_a_time() {
        let of = |query: &str| Route::of("/export", Some(query));
        let page = |count, after| Route::Export(Ok(Export { count, after }));
        let bad = |message| Route::Export(Err(BadRequest(message)));
        let cases = [
            ("", page(1000, After::Time(None))),
            ("count=&after=", page(1000, After::Time(None))),
            ("count=5&after=7", page(5, After::Number(7))),
            ("count=%205x&after=00", page(5, After::Number(0))),
            ("count=5000", page(1000, After::Time(None))),
            ("count=99999999999999999999", page(1000, After::Time(None))),
            ("count=5&count=6", page(1000, After::Time(None))),
            ("after=99999999999999999999", page(1000, After::Number(u64::MAX))),
            ("after=1970-01-01T00:00:00.001Z", page(1000, After::Time(Some(1000)))),
            ("count=0", bad("Invalid count parameter")),
            ("count=-1", bad("Invalid count parameter")),
            ("count=x", bad("Invalid count parameter")),
            ("after=-1", bad("Invalid after parameter")),
            ("after=x", bad("Invalid after parameter")),
        ];
        for (query, route) in cases {
            assert_eq!(of(query), route, "{query}");
        }
    }

    #[test]
    fn a_stream_begins_after_a_cursor_or_now() {
        let of = |query: &str| Route::of("/export/stream", Some(query));
        let bad = Route::Stream(Err(BadRequest("Invalid cursor parameter")));
        assert_eq!(of(""), Route::Stream(Ok(None)));
        assert_eq!(of("cursor="), Route::Stream(Ok(None)));
        assert_eq!(of("cursor=12"), Route::Stream(Ok(Some(12))));
        assert_eq!((of("cursor=-1"), of("cursor=x")), (bad.clone(), bad));
    }
}
