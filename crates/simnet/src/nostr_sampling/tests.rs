use bumpalo::Bump;
use nostr::OwnedEvent;

use super::*;

fn event(kind: u16, content: usize, tags: usize) -> OwnedEvent {
    OwnedEvent {
        id: [1; 32],
        pubkey: [2; 32],
        created_at: 3,
        kind,
        tags: vec![vec!["t".to_owned(), "abc".to_owned()]; tags],
        content: "x".repeat(content),
        sig: [4; 64],
    }
}

#[test]
fn classes_change_at_the_published_thresholds() {
    let size = |content| SizeClass::of(&event(1, content, 0));
    let at = |bytes: usize| (bytes - 375) * 10 / 11;
    for (bytes, [below, above]) in [
        (500, [SizeClass::Tiny, SizeClass::Small]),
        (2_000, [SizeClass::Small, SizeClass::Medium]),
        (10_000, [SizeClass::Medium, SizeClass::Large]),
        (100_000, [SizeClass::Large, SizeClass::Huge]),
    ] {
        assert_eq!([size(at(bytes)), size(at(bytes) + 2)], [below, above], "{bytes}");
    }
    let tags = [0, 1, 5, 6, 20, 21, 100, 101].map(|tags| TagClass::of(&event(1, 0, tags)).name());
    let names = ["none", "few", "few", "moderate", "moderate", "many", "many", "massive"];
    assert_eq!(tags, names);
}

#[test]
fn an_event_is_estimated_the_same_whether_owned_or_borrowed() {
    let (owned, arena) = (event(1, 77, 3), Bump::new());
    assert_eq!(owned.estimated_bytes(), 375 + 84 + 3 * (2 + 4 + 6));
    assert_eq!(owned.borrow_in(&arena).estimated_bytes(), owned.estimated_bytes());
}

#[test]
fn what_is_drawn_depends_on_the_seed_and_not_on_what_was_drawn_before() {
    let events: Vec<_> = (0..100).map(|content| event(1, content, 0)).collect();
    let sampler = Sampler::default();
    let first = sampler.random(&events, 10);
    assert_eq!(first.len(), 10);
    sampler.by_kind(&events, 1, 3);
    assert_eq!(sampler.random(&events, 10), first);
    assert_ne!(Sampler::new(7).random(&events, 10), first);
    assert!(first.is_sorted_by_key(|event| event.content.len()));
    assert_eq!(sampler.random(&events, 1000).len(), 100);
}

#[test]
fn excluded_kinds_are_never_drawn() {
    let events: Vec<_> = (0..50).map(|at| event([1, 443][at % 2], 0, 0)).collect();
    let sampler = Sampler::default().excluding(&[443]);
    assert!(sampler.random(&events, 50).iter().all(|event| event.kind == 1));
    assert!(sampler.by_kind(&events, 443, 5).is_empty());
}

#[test]
fn groups_are_named_in_lines_and_empty_ones_are_left_out() {
    let events = [event(1, 5, 0), event(3, 5, 2), event(99, 5, 0)];
    let groups = Sampler::default().by_kinds(&events, 100);
    let names: Vec<_> = groups.iter().map(|group| &group.name[..]).collect();
    assert_eq!(names, ["kind-1", "kind-3"]);
    let file = grouped_lines(&groups);
    let lines: Vec<_> = file.lines().collect();
    assert_eq!((lines[0], lines[2], lines.len()), ("#kind-1", "#kind-3", 4));
    assert_eq!(lines[1], super::json_lines([&events[0]]).trim_end());
    let groups = Sampler::default().by_categories(&events, 100);
    let names: Vec<_> = groups.iter().map(|group| &group.name[..]).collect();
    assert_eq!(names, ["tiny", "none", "few"]);
}
