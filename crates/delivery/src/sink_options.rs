//! Options that sinks of all kinds are opened with.

use net::http;

use crate::database::OutboxIdentity;
use crate::files::options::FileOptions;
use crate::line_form::LineForm;
use crate::tables::TableContent;
use crate::webhook::options::{WebhookBody, WebhookSecret};

/// Options of the sinks of an outbox; a sink takes the options that it needs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SinkOptions {
    /// The outbox from which the events come.
    pub outbox: OutboxIdentity,
    /// The unit of a line. Default: an event.
    pub form: LineForm,
    /// The content of tables. Default: records.
    pub content: TableContent,
    /// Bounds of files, whose lines have [`form`](Self::form).
    pub files: FileOptions,
    /// Client for URLs of the operator. Default: none.
    pub http: Option<http::Client>,
    /// Secret that signs webhooks. Default: none.
    pub webhook_secret: Option<WebhookSecret>,
    /// Form of the body of a webhook. Default: a JSON array.
    pub webhook_body: WebhookBody,
}

impl SinkOptions {
    /// The defaults, for an outbox of this identity.
    pub fn new(outbox: OutboxIdentity) -> Self {
        Self {
            outbox,
            form: LineForm::default(),
            content: TableContent::default(),
            files: FileOptions::default(),
            http: None,
            webhook_secret: None,
            webhook_body: WebhookBody::default(),
        }
    }
}
