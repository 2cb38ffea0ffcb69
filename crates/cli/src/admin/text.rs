//! The documents of the admin API as text for a person.

use std::fmt::Write as _;

use follower::admin_api::documents::{
    AccountPage, AccountStatus, Changed, Collections, Paused, RunStatus,
};

pub(super) fn changed(Changed { changed, selected }: &Changed) -> String {
    format!("{changed} changed, {selected} selected\n")
}

pub(super) fn accounts(page: &AccountPage) -> String {
    list(page.all, "all accounts", &page.accounts)
}

pub(super) fn collections(of: &Collections) -> String {
    list(of.all, "all collections", &of.collections)
}

fn list(has_all: bool, all: &str, entries: &[String]) -> String {
    if has_all {
        format!("{all}\n")
    } else {
        entries.iter().flat_map(|entry| [entry, "\n"]).collect()
    }
}

pub(super) fn paused(paused: &Paused) -> String {
    let intake = paused.intake.then_some("the intake of events");
    let names: Vec<_> =
        intake.into_iter().chain(paused.destinations.iter().map(String::as_str)).collect();
    if names.is_empty() {
        "nothing is paused\n".to_owned()
    } else {
        format!("paused: {}\n", names.join(", "))
    }
}

pub(super) fn run_status(status: &RunStatus) -> String {
    let mut text = String::new();
    let count = |count: Option<usize>| count.map_or("all".to_owned(), |count| count.to_string());
    let intake = match (&status.obstacle, status.paused) {
        (_, true) => "paused",
        (Some(obstacle), false) => obstacle,
        (None, false) => "in order",
    };
    let _ = writeln!(text, "intake        {intake}");
    for host in &status.hosts {
        let state = if host.connected { "connected" } else { "not connected" };
        let cursor = host.cursor.map_or(String::new(), |cursor| format!(", cursor {cursor}"));
        let _ = writeln!(text, "host          {} {state}{cursor}", host.host);
    }
    if let Some(lag) = status.lag_seconds {
        let _ = writeln!(text, "lag           {lag:.1} s");
    }
    let _ = writeln!(text, "accounts      {}", count(status.accounts));
    let _ = writeln!(text, "collections   {}", count(status.collections));
    if let Some(condition) = &status.condition {
        let _ = writeln!(text, "where         {condition}");
    }
    if let Some(of) = &status.histories {
        let complete = of.complete;
        let outdated = of.outdated;
        let awaited = of.awaited;
        let _ = writeln!(
            text,
            "histories     {complete} complete, {outdated} outdated, {awaited} awaited"
        );
    }
    if status.changes > 0 {
        let _ = writeln!(text, "changes       {} to the command line", status.changes);
    }
    if let Some(outbox) = &status.outbox {
        let events = outbox.events;
        let bytes = outbox.bytes;
        let oldest = outbox.oldest_seconds;
        let _ =
            writeln!(text, "outbox        {events} events, {bytes} bytes, oldest {oldest:.0} s");
    }
    for of in &status.destinations {
        let paused = if of.paused { ", paused" } else { "" };
        let refused = match of.refused_bytes {
            0 => String::new(),
            bytes => format!(", {bytes} bytes of refused events"),
        };
        let _ = writeln!(
            text,
            "destination   {} {} undelivered{refused}{paused}",
            of.destination, of.undelivered
        );
    }
    text
}

pub(super) fn account_status(status: &AccountStatus) -> String {
    let mut text = format!("account       {}\n", status.did);
    let selected = if status.selected { "" } else { ", not selected" };
    let active = if status.active { "" } else { ", inactive" };
    let complete = match status.complete {
        Some(true) => ", complete",
        Some(false) => ", incomplete",
        None => "",
    };
    let _ = writeln!(text, "state         {}{selected}{active}{complete}", status.state);
    if let Some(collections) = status.complete_in.as_ref().filter(|of| !of.is_empty()) {
        let _ = writeln!(text, "complete in   {}", collections.join(", "));
    }
    if let (Some(rev), Some(commit)) = (&status.rev, &status.commit) {
        let _ = writeln!(text, "rev           {rev}\ncommit        {commit}");
    }
    if let Some(event) = &status.last_event {
        let seq = event.seq.map_or(String::new(), |seq| format!(" {seq}"));
        let kind = &event.kind;
        let host = &event.host;
        let code = &event.code;
        let ago = event.seconds_ago;
        let _ = writeln!(text, "last event    {kind}{seq} of {host}: {code}, {ago:.0} s ago");
    }
    for of in &status.deliveries {
        let more = if of.complete { "" } else { " or more" };
        let oldest = of.oldest.as_ref().map_or(String::new(), |id| format!(", oldest {id}"));
        let _ = writeln!(
            text,
            "destination   {} {}{more} undelivered{oldest}",
            of.destination, of.undelivered
        );
    }
    for reason in &status.behind {
        let _ = writeln!(text, "behind        {}", reason.message);
    }
    text
}
