//! What is there to say to a person of what a connection did?

use wireproof::net::firehose::Notice;

/// A line, if a person wants to know.
pub(crate) fn text(host: &str, notice: &Notice) -> Option<String> {
    let of_server = |name: &str, message: &str| match message {
        "" => format!("{host} says {name}"),
        message => format!("{host} says {name}: {message}"),
    };
    Some(match notice {
        Notice::Connected { cursor: Some(cursor), .. } => {
            format!("{host}: connected, behind {cursor}")
        }
        Notice::Connected { cursor: None, .. } => format!("{host}: connected, from now on"),
        Notice::Disconnected { reason, .. } => format!("{host}: {reason}"),
        Notice::ConnectFailed { error, .. } => format!("{host}: {error}"),
        Notice::HostExcluded { error, .. } => format!("{host} is not asked any more: {error}"),
        Notice::RetryScheduled { time, .. } => format!("{host}: next attempt in {time:.1?}"),
        Notice::Rotated { .. } => format!("{host} is next"),
        Notice::Regressed { after, seq, .. } => {
            format!("{host}: number {seq} came after {after}; it was taken all the same")
        }
        Notice::Reused { seq, .. } => format!("{host}: number {seq} was used for two events"),
        Notice::OutdatedCursor { cursor, .. } => format!(
            "{host} no longer has all that came after {}: events are missing",
            cursor.unwrap_or_default()
        ),
        Notice::FutureCursor { cursor, .. } => format!(
            "{host} has never come as far as {}: its numbers begin anew",
            cursor.unwrap_or_default()
        ),
        Notice::ConsumerTooSlow { message, .. } => of_server("ConsumerTooSlow", message),
        Notice::ServerError { name, message, .. } | Notice::ServerInfo { name, message, .. } => {
            of_server(name, message)
        }
        // Relays leave numbers out, and hosts begin with the event of the cursor.
        _ => return None,
    })
}

/// Whether a host can make as many of these as it likes.
pub(super) fn may_be_many(notice: &Notice) -> bool {
    matches!(notice, Notice::Regressed { .. } | Notice::Reused { .. } | Notice::ServerInfo { .. })
}
