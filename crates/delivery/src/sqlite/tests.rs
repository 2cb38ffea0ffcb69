//! Lines of `follow` and the tables that follow from them; files that cannot be used.

use tempfile::TempDir;

use super::*;
use crate::event::{EventId, NewEvent};

const DID: &str = "did:web:a.test";
const OUTBOX: OutboxIdentity = OutboxIdentity([7; 16]);

/// A sink with a file of its own, and the position of the last event.
struct Fixture {
    dir: TempDir,
    sink: SqliteSink,
    position: u64,
}

impl Fixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let sink = open(&dir).unwrap();
        Self { dir, sink, position: 0 }
    }

    /// Sends lines as the next events.
    async fn send(&mut self, lines: &[String]) {
        let events: Vec<Event> = lines.iter().map(|line| self.next(line)).collect();
        self.sink.send(&events).await.unwrap();
    }

    fn next(&mut self, line: &str) -> Event {
        self.position += 1;
        event(self.position, line)
    }

    /// The rows of a query, with the values of a row separated by spaces.
    fn rows(&self, query: &str) -> Vec<String> {
        let file = Connection::open(self.dir.path().join("events.db")).unwrap();
        let mut select = file.prepare(query).unwrap();
        let columns = select.column_count();
        let text = |row: &rusqlite::Row<'_>| {
            let value = |at| match row.get_ref(at).unwrap() {
                rusqlite::types::ValueRef::Null => "-".to_owned(),
                rusqlite::types::ValueRef::Integer(number) => number.to_string(),
                other => other.as_str().unwrap().to_owned(),
            };
            Ok((0..columns).map(value).collect::<Vec<_>>().join(" "))
        };
        select.query_map([], text).unwrap().map(Result::unwrap).collect()
    }

    fn records(&self) -> Vec<String> {
        self.rows("SELECT rkey, cid, rev, live, record FROM record ORDER BY did, collection, rkey")
    }

    fn account(&self) -> Vec<String> {
        self.rows("SELECT rev, active, status, complete FROM account WHERE did = 'did:web:a.test'")
    }
}

fn open(dir: &TempDir) -> Result<SqliteSink, SendFailure> {
    SqliteSink::open(&dir.path().join("events.db"), OUTBOX, SqliteOptions::default())
}

fn event(position: u64, line: &str) -> Event {
    let id = EventId::of_message(DID, "relay.test", position);
    Event::stored(position, &NewEvent::new(id, DID, line.to_owned()).unwrap())
}

fn line(kind: &str, rev: &str, code: &str, more: &str) -> String {
    let verdict = if code.starts_with("verified") { "verified" } else { "unchecked" };
    let more = match kind {
        "commit" if !more.contains("ops") => r#","ops":[]"#,
        _ => more,
    };
    format!(
        r#"{{"v":1,"id":"x","live":{live},"host":"https://a","kind":"{kind}","did":"{DID}","rev":"{rev}","verdict":"{verdict}","code":"{code}"{more}}}"#,
        live = kind != "resync"
    )
}

fn put(rkey: &str, cid: &str) -> String {
    format!(
        r#"{{"action":"create","collection":"a.b.c","rkey":"{rkey}","cid":"{cid}","record":{{"text":"\u0007{cid}"}}}}"#
    )
}

fn delete(rkey: &str) -> String {
    format!(r#"{{"action":"delete","collection":"a.b.c","rkey":"{rkey}"}}"#)
}

fn commit(rev: &str, ops: &[String]) -> String {
    line("commit", rev, "verified", &format!(r#","ops":[{}]"#, ops.join(",")))
}

fn piece(rev: &str, piece: u64, last: bool, ops: &[String]) -> String {
    let more = format!(
        r#","commit":"c","records":9,"invalid_records":0,"bytes":9,"piece":{piece},"whole":true,"ops":[{}],"last":{last}"#,
        ops.join(",")
    );
    line("resync", rev, "verified", &more)
}

/// A piece of the difference to the lines before.
fn difference(rev: &str, number: u64, last: bool, ops: &[String]) -> String {
    piece(rev, number, last, ops).replace(r#""whole":true"#, r#""whole":false"#)
}

fn record(rkey: &str, cid: &str, rev: &str, live: u8) -> String {
    format!(r#"{rkey} {cid} {rev} {live} {{"text":"\u0007{cid}"}}"#)
}

fn claim(active: bool, status: &str) -> String {
    let status = if status.is_empty() { String::new() } else { format!(r#","status":"{status}""#) };
    line("account", "-", "unchecked", &format!(r#","active":{active}{status}"#))
}

#[tokio::test]
async fn rows_are_the_records_that_were_written_or_deleted_each_event_once() {
    let mut fixture = Fixture::new();
    assert_eq!(Sink::rows(&fixture.sink), Some(0));
    let lines = [commit("2", &[put("a", "c1"), put("b", "c2")]), commit("3", &[delete("a")])];
    fixture.send(&lines[..1]).await;
    assert_eq!(Sink::rows(&fixture.sink), Some(2));
    let again = [event(1, &lines[0]), fixture.next(&lines[1])];
    fixture.sink.send(&again).await.unwrap();
    assert_eq!(Sink::rows(&fixture.sink), Some(3));
}

#[tokio::test]
async fn an_account_whose_history_is_outdated_is_incomplete_until_its_next_repository() {
    let mut all = Fixture::new();
    let outdated = line("history", "-", "history/outdated", "");
    all.send(&[piece("3a", 0, true, &[put("one", "c1")]), outdated]).await;
    assert_eq!((all.account(), all.records().len()), (vec!["3a 1 - 0".to_owned()], 1));
    all.send(&[difference("3a", 0, true, &[put("two", "c2")])]).await;
    assert_eq!((all.account(), all.records().len()), (vec!["3a 1 - 1".to_owned()], 2));
}

/// The last piece of the difference that a part of these collections has, with what is complete then.
fn part(rev: &str, collections: &str, complete: &str) -> String {
    let names = format!(r#","collections":{collections},"complete":{complete},"records""#);
    difference(rev, 0, true, &[]).replace(r#","records""#, &names)
}

fn history(code: &str, complete: &str) -> String {
    line("history", "-", code, &format!(r#","complete":{complete}"#))
}

#[tokio::test]
async fn an_account_is_complete_in_the_collections_that_lines_name_and_in_no_other() {
    let mut all = Fixture::new();
    let complete = "SELECT complete, complete_in FROM account";
    let whole = piece("3a", 0, true, &[put("one", "c1")]);
    all.send(std::slice::from_ref(&whole)).await;
    assert_eq!(all.rows(complete), ["1 -"], "in all collections");
    all.send(&[whole.replace(r#""records""#, r#""complete":["a.b.*","x.y.z"],"records""#)]).await;
    assert_eq!(all.rows(complete), [r#"1 ["a.b.*","x.y.z"]"#]);
    all.send(&[history("history/narrowed", r#"["a.b.c"]"#)]).await;
    assert_eq!(all.rows(complete), [r#"1 ["a.b.c"]"#]);
    all.send(&[history("history/outdated", r#"["a.b.c"]"#)]).await;
    assert_eq!(all.rows(complete), [r#"0 ["a.b.c"]"#]);
    all.send(&[part("3b", r#"["a.b.d"]"#, r#"["a.b.c","a.b.d"]"#)]).await;
    assert_eq!(all.rows(complete), [r#"1 ["a.b.c","a.b.d"]"#], "the part adds to the others");
}

#[tokio::test]
async fn a_part_does_not_complete_the_collections_that_lost_an_event() {
    let mut all = Fixture::new();
    let complete = "SELECT complete, complete_in FROM account";
    let whole = piece("3a", 0, true, &[put("one", "c1")]);
    let broken = line("commit", "3b", "verified/broken", "");
    let outdated = history("history/outdated", r#"["a.b.c"]"#);
    all.send(&[whole, broken, outdated]).await;
    assert_eq!(all.rows(complete), ["0 []"], "a gap is not undone by a selection");
    all.send(&[part("3c", r#"["a.b.d"]"#, r#"["a.b.c","a.b.d"]"#)]).await;
    assert_eq!(all.rows(complete), [r#"0 ["a.b.d"]"#]);
    all.send(&[part("3d", r#"["a.b.c","a.b.d"]"#, r#"["a.b.c","a.b.d"]"#)]).await;
    assert_eq!(all.rows(complete), [r#"1 ["a.b.c","a.b.d"]"#]);
    all.send(&[claim(false, "deleted"), claim(true, "")]).await;
    assert_eq!(all.rows(complete), ["0 []"]);
}

#[tokio::test]
async fn tables_of_the_first_version_name_collections_from_the_next_repository_on() {
    let mut all = Fixture::new();
    all.send(&[piece("3a", 0, true, &[put("one", "c1")])]).await;
    let Fixture { dir, sink, position } = all;
    drop(sink);
    let file = Connection::open(dir.path().join("events.db")).unwrap();
    file.execute_batch("ALTER TABLE account DROP COLUMN complete_in; PRAGMA user_version = 1")
        .unwrap();
    drop(file);
    let sink = open(&dir).unwrap();
    let mut all = Fixture { dir, sink, position };
    let complete = "SELECT complete, complete_in FROM account";
    assert_eq!(all.rows(complete), ["1 []"]);
    all.send(&[difference("3b", 0, true, &[])]).await;
    assert_eq!(all.rows(complete), ["1 -"]);
}

#[tokio::test]
async fn an_account_is_incomplete_from_the_end_of_a_status_until_its_repository_came_again() {
    for (active, status) in
        [(false, "deactivated"), (false, "takendown"), (false, ""), (true, "throttled")]
    {
        let mut all = Fixture::new();
        all.send(&[piece("3a", 0, true, &[put("one", "c1")]), claim(true, "")]).await;
        assert_eq!(all.account(), ["3a 1 - 1"]);
        all.send(&[claim(active, status), claim(true, "")]).await;
        assert_eq!(all.account(), ["3a 1 - 0"], "{status}");
        all.send(&[difference("3b", 0, true, &[])]).await;
        assert_eq!(all.account(), ["3b 1 - 1"], "{status}");
    }
}

#[tokio::test]
async fn the_operations_of_verified_commits_are_applied_and_of_no_other_event() {
    let mut all = Fixture::new();
    all.send(&[
        commit("3a", &[put("one", "c1"), put("two", "c2"), put("three", "c3")]),
        commit("3b", &[put("two", "c4"), delete("one")]),
        commit("3c", &[]).replace("verified", "refused"),
        line("commit", "3d", "unchecked", &format!(r#","ops":[{}]"#, delete("two"))),
    ])
    .await;
    assert_eq!(all.records(), [record("three", "c3", "3a", 1), record("two", "c4", "3b", 1)]);
    assert_eq!(all.account(), ["3b 1 - 0"]);
    let events = all.rows("SELECT number, kind, rev, verdict FROM event");
    assert_eq!(events.len(), 4);
    assert_eq!(events[2], "3 commit 3c refused");
}

#[tokio::test]
async fn records_that_were_not_verified_by_request_make_no_account_complete() {
    for (verdict, code) in [("verified", "verified/unproved"), ("not-asked", "not-asked")] {
        let mut all = Fixture::new();
        let commit = |rev: &str, op: &str| {
            let code =
                format!(r#""verdict":"{verdict}","code":"{code}","verified_against":"signature""#);
            let verified = r#""verdict":"verified","code":"verified""#;
            commit(rev, &[op.to_owned()]).replace(verified, &code)
        };
        all.send(&[piece("3a", 0, true, &[put("one", "c1")])]).await;
        assert_eq!(all.account(), ["3a 1 - 1"]);
        all.send(&[commit("3b", &put("two", "c2")), commit("3b", &delete("one"))]).await;
        let expected = [record("one", "c1", "3a", 0), record("two", "c2", "3b", 1)];
        assert_eq!(all.records(), expected, "an earlier revision changes nothing");
        assert_eq!(all.account(), ["3b 1 - 0"]);
        let marks = all.rows("SELECT code, line ->> 'verified_against' FROM event WHERE live");
        assert_eq!(marks, [format!("{code} signature"), format!("{code} signature")]);
    }
}

#[tokio::test]
async fn an_event_has_its_effect_once_however_often_it_is_sent() {
    let mut all = Fixture::new();
    let events = [
        all.next(&commit("3a", &[put("one", "c1")])),
        all.next(&commit("3b", &[delete("one"), put("two", "c2")])),
    ];
    all.sink.send(&events[..1]).await.unwrap();
    all.sink.send(&events).await.unwrap();
    all.sink.send(&events).await.unwrap();
    assert_eq!(all.records(), [record("two", "c2", "3b", 1)]);
    assert_eq!(all.rows("SELECT count(*) FROM event"), ["2"]);
    assert_eq!(all.sink.stored(OUTBOX).await.unwrap(), Some(2));
    assert_eq!(all.sink.stored(OutboxIdentity([8; 16])).await.unwrap(), None);
    // Another outbox, whose source began before: deleted records do not come back.
    drop(all.sink);
    let path = all.dir.path().join("events.db");
    let other = SqliteSink::open(&path, OutboxIdentity([8; 16]), SqliteOptions::default()).unwrap();
    other.send(&events).await.unwrap();
    all.sink = other;
    assert_eq!(all.records(), [record("two", "c2", "3b", 1)]);
}

#[tokio::test]
async fn a_repository_replaces_the_records_of_its_account_with_its_last_piece() {
    let mut all = Fixture::new();
    all.send(&[
        commit("3a", &[put("gone", "c1"), put("same", "c2"), put("new", "c3")]),
        piece("3c", 0, false, &[put("new", "c4"), put("other", "c5")]),
    ])
    .await;
    assert_eq!(all.records().len(), 4, "until the last piece nothing is missing");
    assert_eq!(all.account(), ["3a 1 - 0"]);
    all.send(&[piece("3c", 1, true, &[put("same", "c2")])]).await;
    let expected = [
        record("new", "c4", "3c", 0),
        record("other", "c5", "3c", 0),
        record("same", "c2", "3a", 1),
    ];
    assert_eq!(all.records(), expected);
    assert_eq!(all.account(), ["3c 1 - 1"]);
    assert_eq!(all.rows("SELECT count(*) FROM event WHERE line IS NULL"), ["2"]);
    // A commit that the repository covers is not applied again; the next one is.
    all.send(&[commit("3b", &[delete("same")]), commit("3d", &[delete("new")])]).await;
    assert_eq!(all.records(), expected[1..]);
    assert_eq!(all.account(), ["3d 1 - 1"]);
    all.send(&[line("sync", "3e", "verified/broken", "")]).await;
    assert_eq!(all.account(), ["3d 1 - 0"]);
}

#[tokio::test]
async fn a_difference_changes_its_records_alone_and_completes_a_history() {
    let mut all = Fixture::new();
    all.send(&[
        piece("3a", 0, true, &[put("one", "c1"), put("two", "c2"), put("three", "c3")]),
        line("commit", "3b", "verified/broken", &format!(r#","ops":[{}]"#, put("four", "c4"))),
        difference("3d", 0, false, &[delete("one"), put("two", "c5")]),
    ])
    .await;
    assert_eq!(all.records().len(), 3);
    assert_eq!(all.account(), ["3b 1 - 0"], "until the last piece");
    all.send(&[difference("3d", 1, true, &[put("five", "c6")])]).await;
    let expected = [
        record("five", "c6", "3d", 0),
        record("four", "c4", "3b", 1),
        record("three", "c3", "3a", 0),
        record("two", "c5", "3d", 0),
    ];
    assert_eq!(all.records(), expected);
    assert_eq!(all.account(), ["3d 1 - 1"]);
    all.send(&[difference("3e", 0, true, &[])]).await;
    assert_eq!((all.records().len(), all.account()), (4, vec!["3e 1 - 1".to_owned()]));
}

#[tokio::test]
async fn a_repository_that_began_anew_counts_from_its_first_piece() {
    let mut all = Fixture::new();
    all.send(&[
        piece("3a", 0, false, &[put("one", "c1")]),
        piece("3b", 0, false, &[put("two", "c2")]),
        piece("3b", 1, true, &[put("three", "c3")]),
    ])
    .await;
    assert_eq!(all.records(), [record("three", "c3", "3b", 0), record("two", "c2", "3b", 0)]);
    assert_eq!(all.account(), ["3b 1 - 1"]);
}

#[tokio::test]
async fn a_repository_with_a_missing_piece_deletes_nothing_and_completes_nothing() {
    let mut all = Fixture::new();
    all.send(&[
        commit("3a", &[put("kept", "c1")]),
        piece("3b", 0, false, &[put("one", "c2")]),
        piece("3b", 2, true, &[put("three", "c3")]),
    ])
    .await;
    assert_eq!(all.records().len(), 3);
    assert_eq!(all.account(), ["3a 1 - 0"]);
}

#[tokio::test]
async fn a_status_hides_the_records_of_its_account_until_a_verified_commit() {
    let mut all = Fixture::new();
    let status = line("account", "", "unchecked", r#","active":false,"status":"takendown""#);
    let handle = line("identity", "", "unchecked", r#","handle":"a.test""#);
    all.send(&[status.clone(), commit("3a", &[put("one", "c1")])]).await;
    assert_eq!(all.account(), ["3a 1 - 0"], "an account without a commit has no row");
    all.send(&[status, handle]).await;
    assert_eq!(all.account(), ["3a 0 takendown 0"]);
    assert_eq!(all.rows("SELECT claimed_handle FROM account"), ["a.test"]);
    let active = "SELECT rkey FROM active_record";
    assert_eq!((all.rows(active).len(), all.records().len()), (0, 1));
    all.send(&[commit("3b", &[])]).await;
    assert_eq!((all.rows(active).len(), all.account()), (1, vec!["3b 1 - 0".to_owned()]));
}

#[tokio::test]
async fn the_records_of_a_deleted_account_are_deleted_once_its_server_confirms_that() {
    let mut all = Fixture::new();
    let claim = line("account", "", "unchecked", r#","active":false,"status":"deleted""#);
    let confirmed = |status: &str| {
        let more = format!(r#","active":false,"status":"{status}""#);
        line("status", "", "status/confirmed", &more)
    };
    all.send(&[piece("3a", 0, true, &[put("one", "c1")]), confirmed("deleted")]).await;
    assert_eq!((all.records().len(), all.account()), (1, vec!["3a 1 - 1".to_owned()]), "active");
    all.send(&[claim, confirmed("takendown")]).await;
    assert_eq!((all.records().len(), all.account()), (1, vec!["3a 0 takendown 1".to_owned()]));
    all.send(&[confirmed("deleted")]).await;
    assert_eq!((all.records().len(), all.account()), (0, vec!["3a 0 deleted 0".to_owned()]));
}

#[tokio::test]
async fn an_invalid_record_is_kept() {
    let mut all = Fixture::new();
    let invalid = r#"{"action":"create","collection":"a.b.c","rkey":"x","cid":"c1","invalid":{"code":"record/cbor"}}"#;
    all.send(&[commit("3a", &[invalid.to_owned()])]).await;
    let rows = all.rows("SELECT rkey, record, invalid FROM record");
    assert_eq!(rows, [r#"x - {"code":"record/cbor"}"#]);
}

#[tokio::test]
async fn a_payload_that_is_no_line_is_refused_with_its_place_after_the_events_before_it() {
    let mut all = Fixture::new();
    let first = piece("3a", 0, true, &[put("one", "c1")]);
    let damaged =
        commit("3b", &[delete("one")]).replace(r#""kind":"commit""#, r#""kind":"commits""#);
    let events = [&first, &damaged, &commit("3c", &[put("two", "c2")])].map(|line| all.next(line));
    let refused = all.sink.send(&events).await.unwrap_err();
    assert_eq!((refused.kind, &*refused.accepted), (FailureKind::Refused, &[1][..]));
    let expected = "did:web:a.test/relay.test#2: unknown variant `commits`, expected one of ";
    assert!(refused.reason.starts_with(expected), "{refused}");
    assert!(refused.reason.ends_with(", at byte 63 (line/malformed)"), "{refused}");
    assert_eq!(
        (all.sink.position().unwrap(), all.account()),
        (Some(1), vec!["3a 1 - 1".to_owned()])
    );
    // Set aside, it is passed over, and its account is incomplete.
    all.sink.skip(&events[1]).await.unwrap();
    assert_eq!(
        (all.sink.position().unwrap(), all.account()),
        (Some(2), vec!["3a 1 - 0".to_owned()])
    );
    all.sink.send(&events[1..]).await.unwrap();
    assert_eq!(all.records(), [record("one", "c1", "3a", 0), record("two", "c2", "3c", 1)]);
    assert_eq!(all.rows("SELECT rev FROM event"), ["3a", "3c"]);
    for payload in ["[1]", "{}", "no line", r#"{"v":1,"kind":"identity"}"#] {
        let event = all.next(payload);
        let refused = all.sink.send(&[event]).await.unwrap_err();
        assert_eq!((refused.kind, refused.accepted.len()), (FailureKind::Refused, 0), "{payload}");
    }
}

#[tokio::test]
async fn the_last_events_are_kept_and_numbers_are_never_used_again() {
    let mut all = Fixture::new();
    all.sink.tables.lock().unwrap().options.max_events = 2;
    for _ in 0..5 {
        all.send(&[claim(true, "")]).await;
    }
    assert_eq!(all.rows("SELECT number FROM event"), ["4", "5"]);
    all.sink.tables.lock().unwrap().options.max_events = 0;
    all.send(&[claim(true, "")]).await;
    assert!(all.rows("SELECT number FROM event").is_empty());
    all.sink.tables.lock().unwrap().options.max_events = 2;
    all.send(&[claim(true, "")]).await;
    assert_eq!(all.rows("SELECT number FROM event"), ["7"]);
}

#[tokio::test]
async fn a_file_that_is_used_replaced_or_of_another_kind_is_refused_with_the_cure() {
    let mut all = Fixture::new();
    let text = |failure: SendFailure| (failure.kind, failure.reason);
    let (kind, reason) = text(open(&all.dir).unwrap_err());
    assert!(kind == FailureKind::Fatal && reason.contains("another process writes"), "{reason}");

    let path = all.dir.path().join("events.db");
    fs::remove_file(&path).unwrap();
    let event = all.next("{}");
    let (kind, reason) = text(all.sink.send(&[event]).await.unwrap_err());
    assert!(kind == FailureKind::Fatal && reason.contains("deleted or replaced"), "{reason}");

    let change = |name: &str, statement: &str| {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        drop(SqliteSink::open(&path, OUTBOX, SqliteOptions::default()).unwrap());
        Connection::open(&path).unwrap().execute_batch(statement).unwrap();
        text(SqliteSink::open(&path, OUTBOX, SqliteOptions::default()).unwrap_err())
    };
    let (kind, reason) = change("later.db", "PRAGMA user_version = 3");
    assert!(kind == FailureKind::Fatal && reason.contains("tables of version 3"), "{reason}");
    assert!(reason.contains("follow --backfill"), "{reason}");
    let (_, reason) = change("other.db", "PRAGMA application_id = 1");
    assert!(reason.contains("not a database of wireproof"), "{reason}");
}

fn open_for_nostr(dir: &TempDir) -> Result<SqliteSink, SendFailure> {
    let content = TableContent::NostrEvents;
    let options = SqliteOptions { content, ..SqliteOptions::default() };
    SqliteSink::open(&dir.path().join("events.db"), OUTBOX, options)
}

/// A Nostr event at a position, with this content as JSON.
fn nostr_event(position: u64, id: u8, content: &str) -> Event {
    let id = [id; 32];
    let hex = kernels::hex::encode(&id);
    let json = format!(
        r#"{{"id":"{hex}","pubkey":"aa","created_at":-5,"kind":65535,"tags":[["t","\u0000"]],"content":{content},"sig":"bb"}}"#
    );
    let event = NewEvent::new(EventId::of_nostr_event(&id), "aa", json).unwrap();
    Event::stored(position, &event)
}

#[tokio::test]
async fn a_nostr_event_has_one_row_however_often_it_comes_and_from_whichever_outbox() {
    let dir = tempfile::tempdir().unwrap();
    let sink = open_for_nostr(&dir).unwrap();
    sink.send(&[nostr_event(1, 1, r#""a\n\"\u0000é""#), nostr_event(2, 2, "\"b\"")]).await.unwrap();
    sink.send(&[nostr_event(2, 2, "\"b\""), nostr_event(3, 1, "\"other\"")]).await.unwrap();
    assert_eq!(sink.position().unwrap(), Some(3));
    // A payload that is no event is refused, and once it is set aside the others follow.
    let events = [nostr_event(4, 4, "\"d\""), event(5, "{}"), nostr_event(6, 3, "\"c\"")];
    let refused = sink.send(&events).await.unwrap_err();
    assert_eq!((refused.kind, &*refused.accepted), (FailureKind::Refused, &[4][..]));
    assert!(
        refused.reason.ends_with("missing field `id`, at byte 2 (line/malformed)"),
        "{refused}"
    );
    sink.skip(&events[1]).await.unwrap();
    sink.send(&events[1..]).await.unwrap();
    let fixture = Fixture { dir, sink, position: 6 };
    let select = "SELECT number, substr(id, 1, 2), created_at, kind, tags FROM event";
    let expected = [1, 2].map(|number| format!(r#"{number} 0{number} -5 65535 [["t","\u0000"]]"#));
    assert_eq!(fixture.rows(select)[..2], expected);
    let content: Vec<u8> = Connection::open(fixture.dir.path().join("events.db"))
        .unwrap()
        .query_row("SELECT CAST(content AS BLOB) FROM event WHERE number = 1", [], |row| row.get(0))
        .unwrap();
    assert_eq!(content, "a\n\"\0é".as_bytes());
    assert_eq!(fixture.rows("SELECT content FROM event WHERE number > 1"), ["b", "d", "c"]);
}

#[tokio::test]
async fn a_file_has_records_or_nostr_events_and_not_both() {
    let nostr = tempfile::tempdir().unwrap();
    drop(open_for_nostr(&nostr).unwrap());
    let records = tempfile::tempdir().unwrap();
    drop(open(&records).unwrap());
    for refused in [open(&nostr).unwrap_err(), open_for_nostr(&records).unwrap_err()] {
        assert_eq!(refused.kind, FailureKind::Fatal);
        assert!(
            refused.reason.contains("not a database of wireproof for these events"),
            "{refused}"
        );
    }
    open_for_nostr(&nostr).unwrap();
    fs::write(nostr.path().join("events.db"), "").unwrap();
    let reason = open_for_nostr(&nostr).unwrap_err().reason;
    assert!(reason.contains("follow the relays from the start, with another --state"), "{reason}");
}

fn open_for_labels(dir: &TempDir) -> SqliteSink {
    let options = SqliteOptions { content: TableContent::Labels, ..SqliteOptions::default() };
    SqliteSink::open(&dir.path().join("events.db"), OUTBOX, options).unwrap()
}

/// The line of a verified label at a position, which is its sequence number.
fn label(position: u64, uri: &str, cts: &str, rest: &str) -> Event {
    let json = format!(
        r#"{{"v":1,"kind":"label","service":"did:web:l","host":"https://l","seq":{position},"index":0,"verdict":"verified","code":"verified","src":"did:web:l","uri":"{uri}","val":"spam","cts":"{cts}",{rest}"sig":"cw","key":"did:key:z"}}"#
    );
    let id = EventId::of_label("did:web:l", "https://l", position, 0);
    Event::stored(position, &NewEvent::new(id, "did:web:l", json).unwrap())
}

#[tokio::test]
async fn of_labels_about_the_same_the_last_one_counts_and_the_view_has_those_in_force() {
    let dir = tempfile::tempdir().unwrap();
    let sink = open_for_labels(&dir);
    let (old, new) = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
    let events = [
        label(1, "did:web:a", old, ""),
        label(2, "did:web:b", new, ""),
        label(3, "did:web:b", old, r#""neg":true,"#),
        label(4, "did:web:c", old, r#""exp":"2001-01-01T00:00:00Z","#),
        label(5, "did:web:d", old, r#""exp":"9001-01-01T00:00:00Z","neg":false,"#),
        label(6, "did:web:e", old, ""),
        label(7, "did:web:e", old, r#""neg":true,"#),
    ];
    sink.send(&events[..3]).await.unwrap();
    sink.send(&events[3..]).await.unwrap();
    let mut fixture = Fixture { dir, sink, position: 7 };
    let in_force = "SELECT uri FROM label ORDER BY uri";
    assert_eq!(fixture.rows(in_force), ["did:web:a", "did:web:b", "did:web:d"]);
    // A negation, and an older label that comes again after it.
    fixture.sink.send(&[label(8, "did:web:a", new, r#""neg":true,"#)]).await.unwrap();
    fixture.sink.send(&[label(9, "did:web:a", old, "")]).await.unwrap();
    assert_eq!(fixture.rows(in_force), ["did:web:b", "did:web:d"]);
    assert_eq!(fixture.rows("SELECT count(*) FROM label_state"), ["5"]);
    // Lines of refused labels and of messages change nothing; a line without a field is refused.
    let refused = r#"{"v":1,"kind":"label","verdict":"refused","code":"label/cbor"}"#;
    let malformed =
        r#"{"v":1,"kind":"label","verdict":"verified","code":"verified","src":"did:web:l"}"#;
    let other = |position, json: &str| {
        let id = EventId::of_label("did:web:l", "https://l", position, 0);
        Event::stored(position, &NewEvent::new(id, "did:web:l", json.to_owned()).unwrap())
    };
    fixture.sink.send(&[other(10, refused)]).await.unwrap();
    let error = fixture.sink.send(&[other(11, malformed)]).await.unwrap_err();
    assert!(error.reason.contains("no well-formed `uri`"), "{error}");
    fixture.position = 10;
    assert_eq!(fixture.sink.position().unwrap(), Some(10));
}
