//! Segments that stay for readers: every stored event is read once and in order, whatever happens to its segment meanwhile.

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use proptest::prelude::*;
use wireproof_archive::{ArchiveFault, ArchivedEvent, Wal, WalOptions, WalReader};

fn options() -> WalOptions {
    let mut options = WalOptions::default();
    (options.max_gather, options.keeps_segments) = (Duration::ZERO, true);
    options.max_numbers = 9;
    options
}

/// Opens the log. A process that another test starts has a copy of the lock for a moment, until its program begins.
fn open(folder: &Path) -> Wal {
    loop {
        match Wal::open(folder, options()) {
            Ok((wal, _)) => return wal,
            Err(error) if matches!(error.fault, ArchiveFault::InUse) => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Stores events that take `numbers` each, and returns their arrivals.
fn append(wal: &Wal, received: i64, numbers: &[u16]) -> Vec<i64> {
    let (sender, stored) = mpsc::channel();
    for taken in numbers {
        let sender = sender.clone();
        wal.append_with_numbers(&event(received), *taken, move |arrival| {
            sender.send(arrival.unwrap()).unwrap();
        });
    }
    drop(sender);
    stored.iter().collect()
}

fn event(received: i64) -> ArchivedEvent<'static> {
    ArchivedEvent {
        did: Some("did:web:a.test"),
        arrival: 0,
        host: "relay.test",
        seq: None,
        kind: "#commit",
        received,
        verdict: "verified",
        key: None,
        judge: "",
        frame: b"frame",
    }
}

/// The arrivals that a reader finds after `after`, in groups that can begin before it.
fn read(reader: &mut WalReader, after: i64) -> Vec<i64> {
    let groups = std::iter::from_fn(|| reader.next_group().unwrap());
    let arrivals = groups
        .flat_map(|group| group.events().iter().map(|event| event.arrival).collect::<Vec<_>>());
    arrivals.filter(|arrival| *arrival > after).collect()
}

/// Adds the events after those that are there.
fn read_on(reader: &mut WalReader, following: &mut Vec<i64>) {
    let after = following.last().copied().unwrap_or(0);
    following.extend(read(reader, after));
}

#[derive(Clone, Debug)]
enum Step {
    Append(Vec<u16>),
    CloseSegment,
    Keep,
    Forget(u64),
    Reopen,
    ReadOn,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => prop::collection::vec(1_u16..9, 1..6).prop_map(Step::Append),
        2 => Just(Step::CloseSegment),
        2 => Just(Step::Keep),
        1 => (0_u64..600).prop_map(Step::Forget),
        1 => Just(Step::Reopen),
        3 => Just(Step::ReadOn),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_stored_event_is_read_once_whatever_becomes_of_its_segment(
        steps in prop::collection::vec(step(), 1..30),
        from in 0_usize..8,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut wal = open(folder.path());
        let (mut stored, mut following) = (Vec::new(), Vec::new());
        let mut reader = wal.reader(0);
        for step in steps {
            match step {
                // The clock stands still, and events take numbers of the future.
                Step::Append(numbers) => stored.extend(append(&wal, 1_000, &numbers)),
                Step::CloseSegment => runtime.block_on(wal.close_segment()),
                Step::Keep => {
                    wal.closed_segments().unwrap().iter().for_each(|of| wal.keep(of).unwrap());
                }
                Step::Forget(bytes) => drop(wal.forget_kept(bytes, 0).unwrap()),
                Step::Reopen => {
                    read_on(&mut reader, &mut following);
                    drop(wal);
                    wal = open(folder.path());
                    reader = wal.reader(following.last().copied().unwrap_or(0));
                }
                Step::ReadOn => following.extend(read(&mut reader, 0)),
            }
        }
        read_on(&mut reader, &mut following);
        let floor = wal.floor();
        let there: Vec<i64> = stored.iter().copied().filter(|of| *of > floor).collect();
        prop_assert!(stored.is_sorted_by(|one, other| one < other));
        // A reader that follows gets all events that it reaches before they are forgotten, in order.
        prop_assert!(following.is_sorted_by(|one, other| one < other));
        prop_assert!(there.iter().all(|of| following.contains(of)));
        prop_assert_eq!(wal.first().filter(|_| !there.is_empty()), there.first().copied());
        // A reader that begins anywhere gets all that are there.
        let after = stored.get(from).copied().unwrap_or(0).max(floor);
        let expected: Vec<i64> = there.into_iter().filter(|of| *of > after).collect();
        prop_assert_eq!(read(&mut wal.reader(after), after), expected);
    }
}

#[test]
fn numbers_of_an_event_are_of_no_other_even_after_a_crash_while_the_clock_goes_back() {
    let folder = tempfile::tempdir().unwrap();
    let wal = open(folder.path());
    assert_eq!(append(&wal, 500, &[3, 1, 9]), [500, 503, 504]);
    // It changes after the events of a group are reported.
    while *wal.stored().borrow() != 512 {
        std::thread::yield_now();
    }
    drop(wal);
    let wal = open(folder.path());
    let [next] = append(&wal, 7, &[1])[..] else { panic!("one event") };
    assert!(next > 512, "{next}");
}

#[tokio::test]
async fn a_damaged_group_is_an_error_with_its_place_and_never_read() {
    let folder = tempfile::tempdir().unwrap();
    let wal = open(folder.path());
    append(&wal, 500, &[1]);
    append(&wal, 600, &[1]);
    wal.close_segment().await;
    for segment in wal.closed_segments().unwrap() {
        wal.keep(&segment).unwrap();
    }
    let path = folder.path().join("00000000000000000000.kept");
    let mut bytes = fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&path, bytes).unwrap();
    let mut reader = wal.reader(0);
    assert!(reader.next_group().unwrap().is_some());
    let refused = reader.next_group().unwrap_err();
    assert!(matches!(refused.fault, ArchiveFault::DamagedLog { .. }), "{refused}");
}

#[test]
fn a_write_that_fails_is_tried_again_and_the_event_is_stored_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options();
    options.retry_interval = Some(Duration::from_millis(5));
    // Every event begins a segment, and the second one cannot be created.
    options.max_segment_bytes = 1;
    let (wal, _) = Wal::open(folder.path(), options).unwrap();
    let second = folder.path().join("00000000000000000001.wal");
    fs::create_dir(&second).unwrap();
    let (sender, stored) = mpsc::channel();
    for _ in 0..2 {
        let sender = sender.clone();
        wal.append(&event(500), move |arrival| sender.send(arrival.unwrap()).unwrap());
    }
    while wal.obstacle().is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    fs::remove_dir(&second).unwrap();
    drop(sender);
    assert_eq!(stored.iter().collect::<Vec<_>>(), [500, 501]);
    assert!(OpenOptions::new().read(true).open(&second).is_ok());
    assert_eq!(read(&mut wal.reader(0), 0), [500, 501]);
    while wal.obstacle().is_some() {
        std::thread::sleep(Duration::from_millis(1));
    }
}
