use kernels::sha256;
use tempfile::TempDir;

use super::*;
use crate::database::FORMAT;
use crate::event::{EventId, NewEvent};
use crate::outbox::StartAt;
use crate::outbox_options::Options;
use crate::record_effects::RecordEffects;

const DID: &str = "did:web:a.test";

struct Fixture {
    folder: TempDir,
    outbox: Option<Outbox>,
    options: Options,
    events: u64,
}

impl Fixture {
    fn new(options: Options) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut fixture = Self { folder, outbox: None, options, events: 0 };
        fixture.reopen();
        fixture.outbox().register("reader", StartAt::Oldest).unwrap();
        fixture
    }

    fn reopen(&mut self) {
        self.outbox = None;
        let path = self.folder.path().join("outbox.sqlite");
        self.outbox = Some(Outbox::open(&path, self.options).unwrap());
    }

    fn outbox(&self) -> &Outbox {
        self.outbox.as_ref().unwrap()
    }

    fn append(&mut self, did: &str, effects: RecordEffects) {
        self.events += 1;
        let id = EventId::of_commit(did, &self.events.to_string());
        let event = NewEvent::new(id, did, "{}").unwrap().with_effects(effects);
        self.outbox().append_all([event]).unwrap();
    }

    /// Whether the history is complete, and the records with their contents.
    fn records(&self, did: &str) -> (bool, Vec<String>) {
        let mut delivered = self.outbox().delivered_records(did).unwrap();
        let mut all = Vec::new();
        while let Some(record) = delivered.next_record().unwrap() {
            let content = ["1", "2"].into_iter().find(|text| record.has_hash(&hash(text)));
            all.push(format!("{}={}", record.path, content.unwrap()));
        }
        (delivered.is_complete(), all)
    }
}

fn hash(content: &str) -> Digest {
    sha256::digest(content.as_bytes())
}

fn with(mut effects: RecordEffects, changes: &[(&str, &str)]) -> RecordEffects {
    for (path, content) in changes {
        match *content {
            "" => effects.delete(path),
            content => effects.put(path, &hash(content)),
        }
    }
    effects
}

fn commit(changes: &[(&str, &str)]) -> RecordEffects {
    with(RecordEffects::of_commit(), changes)
}

fn whole(changes: &[(&str, &str)], is_last: bool) -> RecordEffects {
    let mut effects = RecordEffects::of_repository(true);
    if is_last {
        effects.complete();
    }
    with(effects, changes)
}

#[test]
fn records_are_those_of_all_events_that_were_appended_stored_or_not() {
    let mut fixture = Fixture::new(Options::default());
    fixture.append(DID, whole(&[], true));
    for count in 1..=100 {
        let id = EventId::of_commit(DID, &format!("c{count}"));
        let effects = commit(&[(&format!("a.b.c/{count}"), "1")]);
        let event = NewEvent::new(id, DID, "{}").unwrap().with_effects(effects);
        fixture.outbox().append(event, |_| ());
        assert_eq!(fixture.records(DID).1.len(), count);
    }
}

#[test]
fn a_history_and_the_commits_after_it_are_remembered_over_a_restart() {
    let mut fixture = Fixture::new(Options::default());
    assert!(!fixture.outbox().has_histories());
    fixture.append(DID, whole(&[("a/1", "1"), ("a/2", "1")], false));
    assert_eq!(fixture.records(DID), (false, vec!["a/1=1".to_owned(), "a/2=1".to_owned()]));
    fixture.append(DID, whole(&[("b/1", "1")], true));
    fixture.append(DID, commit(&[("a/1", ""), ("a/2", "2"), ("c/1", "1"), ("c/none", "")]));
    let expected = (true, ["a/2=2", "b/1=1", "c/1=1"].map(str::to_owned).to_vec());
    assert_eq!(fixture.records(DID), expected);
    fixture.reopen();
    assert_eq!(fixture.records(DID), expected);
    assert!(fixture.outbox().has_histories());
    let difference = RecordEffects::of_repository(false);
    fixture.append(DID, with(difference, &[("b/1", ""), ("d/1", "2")]));
    assert_eq!(fixture.records(DID).1, ["a/2=2", "c/1=1", "d/1=2"]);
}

#[test]
fn a_deleted_account_has_no_records_and_its_next_repository_is_a_whole_one() {
    let mut fixture = Fixture::new(Options::default());
    fixture.append(DID, whole(&[("a/1", "1"), ("a/2", "1")], true));
    fixture.append(DID, RecordEffects::of_deletion());
    for _ in 0..2 {
        assert_eq!(fixture.records(DID), (false, vec![]));
        assert!(fixture.outbox().histories().unwrap().is_awaited(DID).unwrap());
        fixture.reopen();
    }
    fixture.append(DID, commit(&[("a/3", "1")]));
    fixture.append(DID, whole(&[("a/1", "1"), ("a/3", "1")], true));
    assert_eq!(fixture.records(DID), (true, ["a/1=1", "a/3=1"].map(str::to_owned).to_vec()));
    assert!(!fixture.outbox().histories().unwrap().is_awaited(DID).unwrap());
    fixture.append("did:web:unknown.test", RecordEffects::of_deletion());
    assert_eq!(fixture.records("did:web:unknown.test"), (false, vec![]));
}

#[test]
fn a_selection_outdates_what_it_was_not_delivered_for_in_the_transaction_that_stores_it() {
    let other = "did:web:b.test";
    let mut fixture = Fixture::new(Options::default());
    for did in [DID, other] {
        fixture.append(did, whole(&[("a/1", "1")], true));
    }
    let counts = |fixture: &Fixture| {
        let counts = fixture.outbox().histories().unwrap().counts().unwrap();
        (counts.complete, counts.outdated, counts.awaited)
    };
    assert_eq!(fixture.outbox().selection().unwrap(), None);
    fixture.outbox().select("first", Selected::NoMore, |_| true).unwrap();
    assert_eq!(counts(&fixture), (2, 0, 0));
    fixture.outbox().select("less", Selected::NoMore, |did| did == DID).unwrap();
    assert_eq!(counts(&fixture), (1, 1, 0));
    fixture.outbox().select("more", Selected::More, |_| true).unwrap();
    fixture.reopen();
    assert_eq!(counts(&fixture), (0, 2, 0));
    assert_eq!(fixture.outbox().selection().unwrap().as_deref(), Some("more"));
    fixture.append(DID, with(RecordEffects::of_repository(false), &[("b/1", "1")]));
    assert_eq!(counts(&fixture), (0, 2, 0), "not all of it");
    fixture.append(DID, whole(&[("a/1", "1"), ("b/1", "1")], true));
    assert_eq!(counts(&fixture), (1, 1, 0));
    fixture.outbox().outdate_histories_of([DID, "did:web:unknown.test"]).unwrap();
    assert_eq!(counts(&fixture), (0, 2, 0));
}

#[test]
fn a_deletion_ends_that_an_account_is_not_remembered() {
    let options = Options { max_records: 1, ..Options::default() };
    let mut fixture = Fixture::new(options);
    fixture.append(DID, whole(&[("a/1", "1"), ("a/2", "1")], true));
    assert_eq!(fixture.records(DID), (false, vec![]), "not remembered");
    fixture.append(DID, RecordEffects::of_deletion());
    fixture.append(DID, whole(&[("a/1", "1")], true));
    assert_eq!(fixture.records(DID), (true, vec!["a/1=1".to_owned()]));
}

#[test]
fn commits_before_a_history_are_remembered_only_where_it_is_awaited() {
    let mut fixture = Fixture::new(Options::default());
    fixture.append(DID, commit(&[("a/1", "1")]));
    assert_eq!(fixture.records(DID), (false, vec![]));
    fixture.outbox().await_histories([DID, DID]).unwrap();
    fixture.append(DID, commit(&[("a/2", "1")]));
    assert_eq!(fixture.records(DID), (false, vec!["a/2=1".to_owned()]));
    assert!(!fixture.outbox().histories().unwrap().is_complete(DID).unwrap());
}

#[test]
fn an_event_that_is_appended_again_has_its_effects_once() {
    let mut fixture = Fixture::new(Options::default());
    fixture.append(DID, whole(&[("a/1", "1")], true));
    fixture.append(DID, commit(&[("a/1", "")]));
    fixture.events = 0;
    fixture.append(DID, whole(&[("a/1", "1")], true));
    assert_eq!(fixture.records(DID), (true, vec![]));
}

#[test]
fn histories_begin_again_for_a_new_consumer_and_what_consumers_have_stays_known() {
    let mut fixture = Fixture::new(Options::default());
    fixture.append(DID, whole(&[("a/1", "1")], true));
    assert!(fixture.outbox().histories().unwrap().is_complete(DID).unwrap());
    fixture.outbox().restart_histories().unwrap();
    assert!(!fixture.outbox().histories().unwrap().is_complete(DID).unwrap());
    assert_eq!(fixture.records(DID), (false, vec!["a/1=1".to_owned()]));
    fixture.append(DID, whole(&[("a/1", "1")], true));
    assert!(fixture.records(DID).0);
}

#[test]
fn listed_accounts_are_awaited_once_and_a_list_goes_on_after_its_last_page() {
    let mut fixture = Fixture::new(Options::default());
    let list = "https://pds.test";
    let cursor = |fixture: &Fixture| fixture.outbox().histories().unwrap().cursor(list).unwrap();
    assert_eq!(cursor(&fixture), None);
    fixture.outbox().await_histories([DID]).unwrap();
    let listed = |dids: &[&str], cursor| fixture.outbox().await_listed(list, dids, cursor).unwrap();
    assert_eq!(listed(&["did:web:b.test", DID, "did:web:b.test"], Some("2")), 1);
    assert_eq!(listed(&["did:web:c.test"], None), 1);
    fixture.append("did:web:b.test", whole(&[], true));
    fixture.reopen();
    assert_eq!(cursor(&fixture).as_deref(), Some("2"), "the last page can have more later");
    let awaited = |fixture: &Fixture| -> Vec<(String, String)> {
        let all = fixture.outbox().histories().unwrap().awaited().unwrap();
        all.into_iter().map(|of| (of.did.into(), of.source.into())).collect()
    };
    let expected = [(DID, ""), ("did:web:c.test", list)];
    assert_eq!(awaited(&fixture), expected.map(|(did, of)| (did.to_owned(), of.to_owned())));
    fixture.append(DID, commit(&[("a/1", "1")]));
    fixture.outbox().forget_history(DID).unwrap();
    assert_eq!((awaited(&fixture).len(), fixture.records(DID)), (1, (false, vec![])));
}

#[test]
fn an_outdated_history_is_awaited_until_the_difference_and_keeps_what_consumers_have() {
    let mut fixture = Fixture::new(Options::default());
    let incomplete = "did:web:b.test";
    fixture.append(DID, whole(&[("a/1", "1")], true));
    fixture.append(incomplete, whole(&[("a/1", "1")], false));
    fixture.outbox().outdate_histories().unwrap();
    let awaited = |fixture: &Fixture| -> Vec<(String, bool)> {
        let all = fixture.outbox().histories().unwrap().awaited().unwrap();
        all.into_iter().map(|of| (of.did.into(), of.is_outdated)).collect()
    };
    let both = [(DID.to_owned(), true), (incomplete.to_owned(), false)];
    assert_eq!(awaited(&fixture), both);
    fixture.append(DID, commit(&[("a/2", "1")]));
    fixture.append(DID, with(RecordEffects::of_repository(false), &[("b/1", "1")]));
    fixture.reopen();
    assert_eq!(awaited(&fixture), both, "until the last piece");
    assert!(!fixture.outbox().histories().unwrap().is_complete(DID).unwrap());
    let mut last = RecordEffects::of_repository(false);
    last.complete();
    fixture.append(DID, with(last, &[("b/2", "1")]));
    assert_eq!(awaited(&fixture), both[1..]);
    let expected = ["a/1=1", "a/2=1", "b/1=1", "b/2=1"].map(str::to_owned).to_vec();
    assert_eq!(fixture.records(DID), (true, expected));
}

#[test]
fn a_history_that_lacks_only_collections_is_told_apart_until_more_is_missing() {
    let fixture_of = || {
        let mut fixture = Fixture::new(Options::default());
        fixture.append(DID, whole(&[("a/1", "1")], true));
        fixture
    };
    let states = |fixture: &Fixture| -> Vec<(bool, bool)> {
        let all = fixture.outbox().histories().unwrap().awaited().unwrap();
        all.into_iter().map(|of| (of.is_outdated, of.is_widened)).collect()
    };
    let select = |fixture: &Fixture, selected, has_account: bool| {
        fixture.outbox().select("selection", selected, |_| has_account).unwrap();
    };
    let mut fixture = fixture_of();
    select(&fixture, Selected::NoMore, true);
    assert_eq!(states(&fixture), []);
    select(&fixture, Selected::MoreCollections, true);
    select(&fixture, Selected::NoMore, true);
    fixture.reopen();
    assert_eq!(states(&fixture), [(true, true)]);
    assert!(fixture.outbox().has_widened_histories().unwrap());
    assert_eq!(fixture.outbox().histories().unwrap().counts().unwrap().outdated, 1);
    // Its events do not reach consumers, or some were lost.
    let changes: [fn(&Fixture); 4] = [
        |fixture| fixture.outbox().select("selection", Selected::NoMore, |_| false).unwrap(),
        |fixture| fixture.outbox().select("selection", Selected::More, |_| true).unwrap(),
        |fixture| fixture.outbox().outdate_histories().unwrap(),
        |fixture| fixture.outbox().outdate_histories_of([DID]).unwrap(),
    ];
    for change in changes {
        let fixture = fixture_of();
        select(&fixture, Selected::MoreCollections, true);
        change(&fixture);
        assert_eq!(states(&fixture), [(true, false)]);
        select(&fixture, Selected::MoreCollections, true);
        assert_eq!(states(&fixture), [(true, false)]);
    }
    let mut last = RecordEffects::of_repository(false);
    last.complete();
    fixture.append(DID, with(last, &[("b/1", "1")]));
    assert_eq!(states(&fixture), []);
}

#[test]
fn consumers_are_told_of_fewer_collections_once_unless_the_selection_changed_meanwhile() {
    let mut fixture = Fixture::new(Options::default());
    fixture.append(DID, whole(&[("a/1", "1")], true));
    let select = |fixture: &Fixture, text: &str, selected| {
        fixture.outbox().select(text, selected, |_| true).unwrap();
    };
    let narrowed = |fixture: &Fixture| fixture.outbox().histories().unwrap().narrowed().unwrap();
    select(&fixture, "fewer", Selected::FewerCollections);
    select(&fixture, "fewest", Selected::FewerCollections);
    fixture.reopen();
    assert_eq!(narrowed(&fixture), [DID.into()]);
    let histories = fixture.outbox().histories().unwrap();
    assert!(histories.is_complete(DID).unwrap() && !histories.is_awaited(DID).unwrap());
    assert_eq!((histories.counts().unwrap().complete, histories.awaited().unwrap()), (1, vec![]));
    fixture.outbox().narrowed_are_told([DID], "fewer").unwrap();
    assert_eq!(narrowed(&fixture), [DID.into()], "they know an earlier selection");
    fixture.outbox().narrowed_are_told([DID], "fewest").unwrap();
    assert_eq!(narrowed(&fixture), []);

    // The line of a missing history names the collections too.
    select(&fixture, "fewer", Selected::FewerCollections);
    select(&fixture, "others", Selected::MoreCollections);
    assert!(fixture.outbox().histories().unwrap().is_widened(DID).unwrap());
    assert_eq!(narrowed(&fixture), []);
}

#[test]
fn at_the_limit_an_account_is_forgotten_until_its_next_whole_repository() {
    let mut fixture = Fixture::new(Options { max_records: 3, ..Options::default() });
    fixture.append(DID, whole(&[("a/1", "1"), ("a/2", "1")], true));
    let other = "did:web:b.test";
    fixture.append(other, whole(&[("a/1", "1"), ("a/2", "1"), ("a/3", "1")], true));
    assert_eq!(fixture.records(other), (false, vec![]), "not remembered");
    assert!(fixture.outbox().histories().unwrap().is_complete(other).unwrap());
    assert_eq!(fixture.records(DID).1.len(), 2, "others stay");
    fixture.append(DID, commit(&[("a/1", ""), ("a/2", "")]));
    fixture.append(other, commit(&[("a/9", "1")]));
    fixture.append(other, whole(&[("a/1", "1"), ("a/2", "1"), ("a/3", "1")], true));
    assert_eq!(fixture.records(other).1.len(), 3);
    fixture.reopen();
    fixture.append(DID, commit(&[("a/1", "1")]));
    assert_eq!(fixture.records(DID), (false, vec![]), "the count is that of the file");
}

#[test]
fn the_records_of_an_account_that_is_forgotten_make_room_for_others() {
    let mut fixture = Fixture::new(Options { max_records: 2, ..Options::default() });
    fixture.append(DID, whole(&[("a/1", "1"), ("a/2", "1")], true));
    fixture.outbox().forget_history(DID).unwrap();
    let other = "did:web:b.test";
    fixture.append(other, whole(&[("a/1", "1"), ("a/2", "1")], true));
    assert_eq!(fixture.records(other).1.len(), 2);
    fixture.append(DID, commit(&[("a/1", "1")]));
    assert_eq!(fixture.records(DID), (false, vec![]), "its row is gone");
    fixture.append(other, commit(&[("a/1", "2"), ("a/2", "")]));
    assert_eq!(fixture.records(other).1.len(), 1, "an update at the limit takes no room");
}

#[test]
fn an_outbox_that_counts_the_records_of_each_account_is_migrated() {
    let mut fixture = Fixture::new(Options { max_records: 3, ..Options::default() });
    fixture.append(DID, whole(&[("a/1", "1"), ("a/2", "1")], true));
    fixture.outbox = None;
    let path = fixture.folder.path().join("outbox.sqlite");
    let old = Connection::open(&path).unwrap();
    old.execute_batch(
        "DROP TABLE record_count; ALTER TABLE account ADD COLUMN records INTEGER NOT NULL DEFAULT 2;
         ALTER TABLE digest DROP COLUMN keys; DROP TABLE selection; PRAGMA user_version = 2",
    )
    .unwrap();
    drop(old);
    fixture.reopen();
    assert_eq!(fixture.records(DID).1.len(), 2);
    let other = "did:web:b.test";
    fixture.append(other, whole(&[("a/1", "1"), ("a/2", "1")], true));
    assert_eq!(fixture.records(other), (false, vec![]), "the count is that of all accounts");
    assert_eq!(fixture.records(DID).1.len(), 2);
}

#[test]
fn records_are_read_in_order_whatever_their_number_and_while_those_before_change() {
    let mut fixture = Fixture::new(Options::default());
    let paths: Vec<String> = (0..1500).map(|number| format!("a.b.c/{number:04}")).collect();
    let changes: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), "1")).collect();
    fixture.append(DID, whole(&changes, true));
    let mut delivered = fixture.outbox().delivered_records(DID).unwrap();
    for path in &paths {
        assert_eq!(&*delivered.next_record().unwrap().unwrap().path, path);
        if path.ends_with("00") {
            fixture.append(DID, commit(&[(path, "")]));
        }
    }
    assert_eq!(delivered.next_record().unwrap(), None);
    assert_eq!(fixture.records(DID).1.len(), 1485);
}

#[test]
fn an_outbox_of_the_first_version_is_migrated() {
    let mut fixture = Fixture::new(Options::default());
    fixture.append(DID, commit(&[]));
    fixture.outbox = None;
    let path = fixture.folder.path().join("outbox.sqlite");
    let old = Connection::open(&path).unwrap();
    old.execute_batch(
        "DROP TABLE account; DROP TABLE record; DROP TABLE record_count; DROP TABLE listing;
         DROP TABLE selection; ALTER TABLE digest DROP COLUMN keys; PRAGMA user_version = 1",
    )
    .unwrap();
    drop(old);
    fixture.reopen();
    assert_eq!(fixture.outbox().status().events, 1);
    fixture.append(DID, whole(&[("a/1", "1")], true));
    assert!(fixture.records(DID).0);
    fixture.outbox = None;
    let later = Connection::open(&path).unwrap();
    later.pragma_update(None, "user_version", FORMAT.version + 1).unwrap();
    drop(later);
    let refused = Outbox::open(&path, Options::default()).unwrap_err();
    assert!(matches!(refused.fault, OutboxFault::OtherVersion { .. }), "{refused}");
}
