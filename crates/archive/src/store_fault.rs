//! Faults of object stores: the problem, the answer of the store, and the remedy.

use std::error::Error as _;
use std::fmt::Write;

use object_store::Error;

/// A failed request to an object store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem} ({detail}): {}", problem.cure())]
pub struct StoreFault {
    /// The problem.
    pub problem: StoreProblem,
    /// The answer of the store, or the reason that there is none.
    pub detail: String,
}

/// A problem of an object store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreProblem {
    /// The bucket or container does not exist.
    #[error("the bucket of the address does not exist")]
    NoBucket,
    /// A file of a table does not exist.
    #[error("the object does not exist")]
    NoObject,
    /// The credentials are wrong, or do not allow the request.
    #[error("the object store refuses the credentials")]
    Refused,
    /// The bucket is in another region.
    #[error("the object store has the bucket elsewhere")]
    Elsewhere,
    /// The store does not answer, or only with errors of its own.
    #[error("the object store does not answer")]
    Unavailable,
    /// A put to an existing name replaces the object.
    #[error(
        "the object store ignores `If-None-Match: *`, so that writers would overwrite each other's commits"
    )]
    NoConditionalPut,
    /// The answer has other bytes than were asked for.
    #[error("the object store answers with other bytes")]
    Malformed,
    /// Anything else.
    #[error("the object store fails")]
    Other,
}

impl StoreFault {
    pub(crate) fn new(problem: StoreProblem, detail: impl Into<String>) -> Self {
        Self { problem, detail: detail.into() }
    }

    /// The fault behind an error; `None` for one of a local file.
    pub(crate) fn of(error: &Error) -> Option<Self> {
        let text = text_of(error);
        let is_local = match error {
            Error::Generic { store, .. } => *store == "LocalFileSystem",
            Error::NotFound { .. }
            | Error::AlreadyExists { .. }
            | Error::Precondition { .. }
            | Error::PermissionDenied { .. }
            | Error::Unauthenticated { .. } => !text.contains(REQUEST),
            _ => false,
        };
        (!is_local).then(|| Self::new(StoreProblem::of(error, &text), detail(&text)))
    }

    /// Whether the same may succeed later.
    pub fn is_temporary(&self) -> bool {
        matches!(self.problem, StoreProblem::Unavailable | StoreProblem::Malformed)
    }
}

impl StoreProblem {
    fn of(error: &Error, text: &str) -> Self {
        let has = |parts: &[&str]| parts.iter().any(|part| text.contains(part));
        match error {
            _ if is_missing_bucket(text) => Self::NoBucket,
            Error::NotFound { .. } if code_of(text).is_none_or(is_of_object) => Self::NoObject,
            // Some stores do not know an account so.
            Error::NotFound { .. } => Self::Refused,
            Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => Self::Refused,
            _ if has(&["status code: 400"])
                && has(&["AuthorizationHeaderMalformed", "IllegalLocationConstraint"]) =>
            {
                Self::Elsewhere
            }
            _ if has(&["without LOCATION", "status code: 301", "status code: 307"]) => {
                Self::Elsewhere
            }
            _ if has(&["status code: 5", "status code: 429", "status code: 408"]) => {
                Self::Unavailable
            }
            // As listings say it.
            _ if has(&["status code: 401", "status code: 403", "status code: 404"]) => {
                Self::Refused
            }
            _ if has(&["status code: "]) => Self::Other,
            Error::Generic { store: "range", .. } => Self::Malformed,
            Error::Generic { .. } => Self::Unavailable,
            _ => Self::Other,
        }
    }

    /// The remedy.
    fn cure(self) -> &'static str {
        match self {
            Self::NoBucket => "create it, or correct the address",
            Self::NoObject => {
                "an erasure may have deleted it meanwhile: try again; else another program has deleted it"
            }
            Self::Refused => {
                "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (GOOGLE_…, AZURE_…), and that they may get, put, delete \
                 and list objects there"
            }
            Self::Elsewhere => "set AWS_REGION to the region of the bucket",
            Self::Unavailable => {
                "nothing that was stored is lost; check AWS_ENDPOINT_URL, AWS_REGION and the network, and try again"
            }
            Self::NoConditionalPut => "use a store, or a version of it, with conditional puts",
            Self::Malformed => "try again; check proxies on the way to the store",
            Self::Other => "check the address and the settings in the environment",
        }
    }
}

/// Whether an error says that an object does not exist, and not that the bucket or the account does not.
pub(crate) fn is_missing_object(error: &Error) -> bool {
    let text = text_of(error);
    matches!(error, Error::NotFound { .. })
        && !is_missing_bucket(&text)
        && code_of(&text).is_none_or(is_of_object)
}

/// Whether the code of an answer 404 says that there is no object.
fn is_of_object(code: &str) -> bool {
    ["NoSuchKey", "BlobNotFound", "ResourceNotFound"].contains(&code)
}

/// Whether an error says that the bucket does not exist.
fn is_missing_bucket(text: &str) -> bool {
    ["NoSuchBucket", "ContainerNotFound", "The specified bucket does not exist"]
        .iter()
        .any(|code| text.contains(code))
}

/// The messages of an error and of its causes, without repetitions.
fn text_of(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let message = cause.to_string();
        if !text.contains(&message) {
            let _ = write!(text, ": {message}");
        }
        source = cause.source();
    }
    text
}

/// The code of an answer in XML.
fn code_of(text: &str) -> Option<&str> {
    let (_, code) = text.split_once("<Code>")?;
    Some(code.split_once("</Code>")?.0)
}

/// The answer of a store: the status and its code, or the start of the message. The text is untrusted.
fn detail(text: &str) -> String {
    let status = text.split_once("status code: ").map(|(_, after)| after);
    let said = match status {
        Some(after) => {
            let status = after.split(':').next().unwrap_or_default();
            match code_of(after) {
                Some(code) => format!("{status}, {code}"),
                None => status.to_owned(),
            }
        }
        // The cause comes after the request.
        None => text.rsplit_once(" - ").map_or(text, |(_, cause)| cause).to_owned(),
    };
    let printable = said.chars().map(|char| if char.is_control() { ' ' } else { char });
    printable.take(MAX_DETAIL).collect::<String>().trim().to_owned()
}

/// Text that errors of requests contain.
const REQUEST: &str = "Error performing ";

/// Maximum number of characters of a store's answer.
const MAX_DETAIL: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    /// An error as `object_store` makes it of a response.
    fn response(status: &str, body: &str) -> Box<dyn std::error::Error + Send + Sync> {
        let text = "Error performing GET http://localhost/bucket/key in 1ms - Server returned non-2xx status code: ";
        format!("{text}{status}: {body}").into()
    }

    fn generic(status: &str, body: &str) -> Error {
        Error::Generic { store: "S3", source: response(status, body) }
    }

    fn problem(error: &Error) -> StoreProblem {
        StoreFault::of(error).unwrap().problem
    }

    #[test]
    fn a_missing_bucket_is_told_from_a_missing_object() {
        let missing = |code: &str| Error::NotFound {
            path: "key".to_owned(),
            source: response("404 Not Found", &format!("<Error><Code>{code}</Code></Error>")),
        };
        assert_eq!(problem(&missing("NoSuchBucket")), StoreProblem::NoBucket);
        assert_eq!(problem(&missing("NoSuchKey")), StoreProblem::NoObject);
        for code in ["InvalidAccessKeyId", "XAdminUserNotFound"] {
            assert_eq!(problem(&missing(code)), StoreProblem::Refused, "{code}");
        }
        assert!(is_missing_object(&missing("NoSuchKey")));
        for code in ["NoSuchBucket", "InvalidAccessKeyId", "Anything"] {
            assert!(!is_missing_object(&missing(code)), "{code}");
        }
    }

    #[test]
    fn statuses_are_refusals_outages_or_other_faults() {
        let source = response("403 Forbidden", "<Error><Code>InvalidAccessKeyId</Code></Error>");
        let refused = Error::PermissionDenied { path: String::new(), source };
        assert_eq!(
            StoreFault::of(&refused).unwrap().to_string(),
            "the object store refuses the credentials (403 Forbidden, InvalidAccessKeyId): check AWS_ACCESS_KEY_ID and \
             AWS_SECRET_ACCESS_KEY (GOOGLE_…, AZURE_…), and that they may get, put, delete and list objects there"
        );
        assert_eq!(problem(&generic("503 Service Unavailable", "")), StoreProblem::Unavailable);
        assert_eq!(problem(&generic("429 Too Many Requests", "")), StoreProblem::Unavailable);
        assert_eq!(problem(&generic("400 Bad Request", "")), StoreProblem::Other);
        let elsewhere = "<Error><Code>AuthorizationHeaderMalformed</Code></Error>";
        assert_eq!(problem(&generic("400 Bad Request", elsewhere)), StoreProblem::Elsewhere);
        let no_answer = Error::Generic { store: "S3", source: "error sending request".into() };
        assert!(StoreFault::of(&no_answer).unwrap().is_temporary());
    }

    #[test]
    fn what_a_store_said_is_short_and_on_one_line() {
        let body = format!("\u{1b}[31m\n{}", "x".repeat(10_000));
        let said = Error::Generic { store: "S3", source: body.into() };
        let detail = StoreFault::of(&said).unwrap().detail;
        assert!(detail.len() <= MAX_DETAIL && !detail.contains(char::is_control), "{detail}");
    }

    #[test]
    fn an_error_of_a_local_file_is_none_of_a_store() {
        let source = Box::new(std::io::Error::from(std::io::ErrorKind::NotFound));
        let missing = Error::NotFound { path: "file".to_owned(), source };
        assert_eq!(StoreFault::of(&missing), None);
        let failed = Error::Generic { store: "LocalFileSystem", source: "denied".into() };
        assert_eq!(StoreFault::of(&failed), None);
    }
}
