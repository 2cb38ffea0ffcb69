//! Answers to requests: status, type and body, as the reference server gives them.

use atproto::plc::{AccountData, Operation};
use atproto::syntax::Did;
use store::{MirrorRow, MirroredOperation, PlcMirrorReader, StoreError, StoreFault};

use crate::document::document;
use crate::lines::{push_audit, push_numbered, push_timed};
use crate::route::{After, BadRequest, Export, Route, View};

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The type of the body.
    pub content_type: &'static str,
    /// The body.
    pub body: String,
}

impl Answer {
    /// The answer to a `GET` of this path and query, from a mirror. A stream is not part of it: it needs an upgrade.
    ///
    /// # Errors
    /// If the mirror cannot be read, or is damaged.
    pub fn to(
        mirror: &PlcMirrorReader,
        path: &str,
        query: Option<&str>,
    ) -> Result<Self, StoreError> {
        answer(mirror, &Route::of(path, query))
    }

    pub(crate) fn json(status: u16, body: String) -> Self {
        Self { status, content_type: JSON, body }
    }

    pub(crate) fn message(status: u16, message: &str) -> Self {
        Self::json(status, serde_json::json!({ "message": message }).to_string())
    }

    /// The state of a server whose mirror cannot be read.
    pub(crate) fn unhealthy() -> Self {
        Self::json(
            503,
            concat!(
                r#"{"version":""#,
                env!("CARGO_PKG_VERSION"),
                r#"","error":"Service Unavailable"}"#
            )
            .to_owned(),
        )
    }

    /// The answer to a request that the server itself fails at.
    pub(crate) fn failed() -> Self {
        Self::message(500, "Internal Server Error")
    }
}

impl From<BadRequest> for Answer {
    fn from(request: BadRequest) -> Self {
        Self::message(400, request.0)
    }
}

/// The answer to a request.
pub(crate) fn answer(mirror: &PlcMirrorReader, route: &Route) -> Result<Answer, StoreError> {
    match route {
        Route::Account { did, view } => account(mirror, did, *view),
        Route::Export(Ok(export)) => page(mirror, export),
        Route::Export(Err(bad)) | Route::Stream(Err(bad)) => Ok((*bad).into()),
        Route::Stream(Ok(_)) => Ok(Answer::message(426, "upgrade required")),
        Route::Health => {
            mirror.totals()?;
            Ok(Answer::json(
                200,
                concat!(r#"{"version":""#, env!("CARGO_PKG_VERSION"), r#""}"#).to_owned(),
            ))
        }
        Route::Home => Ok(Answer {
            status: 302,
            content_type: "text/plain; charset=utf-8",
            body: format!("Found. Redirecting to {HOME}"),
        }),
        Route::Unknown => Ok(Answer::message(404, "Not Found")),
        Route::Undecodable(segment) => {
            Ok(Answer::message(400, &format!("Failed to decode param '{segment}'")))
        }
    }
}

fn account(mirror: &PlcMirrorReader, did: &str, view: View) -> Result<Answer, StoreError> {
    match view {
        View::Document | View::Data | View::Last => match mirror.last_operation(did)? {
            None => Ok(not_registered(did)),
            Some(last) if view == View::Last => Ok(Answer::json(200, last.json)),
            Some(last) => of_data(&last, view).ok_or_else(|| {
                StoreError::new(
                    mirror.path(),
                    StoreFault::Damaged(format!("the last operation of {did}")),
                )
            }),
        },
        View::Log | View::Audit => {
            let mut operations = mirror.operations(did)?;
            if view == View::Log {
                operations.retain(|operation| !operation.nullified);
            }
            match (operations.is_empty(), view) {
                (true, _) => Ok(not_registered(did)),
                (_, View::Audit) => Ok(Answer::json(200, list(&operations, push_audit))),
                _ => Ok(Answer::json(200, list(&operations, |of, out| out.push_str(of.json)))),
            }
        }
    }
}

/// The document or the data of an account whose last operation in force is this one; `None` if it is damaged.
fn of_data(last: &MirroredOperation, view: View) -> Option<Answer> {
    let did = Did::parse(&last.did).ok()?;
    let operation = Operation::parse(last.json.as_bytes()).ok()?;
    let Some(data) = operation.unsigned().to_data() else {
        return Some(Answer::message(404, &format!("DID not available: {did}")));
    };
    Some(match view {
        View::Document => {
            Answer { status: 200, content_type: DOCUMENT, body: document(did, &data) }
        }
        _ => Answer::json(200, AccountData::to_json(&data, did)),
    })
}

fn not_registered(did: &str) -> Answer {
    Answer::message(404, &format!("DID not registered: {did}"))
}

fn page(mirror: &PlcMirrorReader, export: &Export) -> Result<Answer, StoreError> {
    let body = match export.after {
        After::Number(after) => return Ok(numbered_page(mirror, after, export.count)?.0),
        After::Time(after) => {
            let after = after.unwrap_or(i64::MIN);
            lines(&mirror.operations_after_time(after, export.count)?)
        }
    };
    Ok(Answer { status: 200, content_type: JSON_LINES, body })
}

/// A page by number, and what distinguishes it from every other one: the numbers, times and CIDs of its operations, which decide
/// all that it says of them.
pub(crate) fn numbered_page(
    mirror: &PlcMirrorReader,
    after: u64,
    count: usize,
) -> Result<(Answer, Vec<u8>), StoreError> {
    let (mut body, mut identity) = (String::with_capacity(LINE_BYTES * count), Vec::new());
    mirror.visit_after(after, count, |row| {
        if !body.is_empty() {
            body.push('\n');
        }
        push_numbered(row, &mut body);
        identity.extend_from_slice(&row.seq.to_be_bytes());
        identity.extend_from_slice(&row.created_at_micros.to_be_bytes());
        identity.extend_from_slice(row.cid.as_bytes());
    })?;
    Ok((Answer { status: 200, content_type: JSON_LINES, body }, identity))
}

fn list(operations: &[MirroredOperation], push: fn(&MirrorRow<'_>, &mut String)) -> String {
    let mut body = String::from("[");
    join(operations, ',', push, &mut body);
    body.push(']');
    body
}

fn lines(operations: &[MirroredOperation]) -> String {
    let mut body = String::with_capacity(LINE_BYTES * operations.len());
    join(operations, '\n', push_timed, &mut body);
    body
}

fn join(
    operations: &[MirroredOperation],
    separator: char,
    push: fn(&MirrorRow<'_>, &mut String),
    out: &mut String,
) {
    for (index, operation) in operations.iter().enumerate() {
        if index > 0 {
            out.push(separator);
        }
        push(&operation.as_row(), out);
    }
}

/// The page to which the reference server redirects visitors.
pub(crate) const HOME: &str = "https://web.plc.directory";

const JSON: &str = "application/json; charset=utf-8";
const JSON_LINES: &str = "application/jsonlines";
const DOCUMENT: &str = "application/did+ld+json; charset=utf-8";

/// The usual length of a line in bytes.
const LINE_BYTES: usize = 900;
