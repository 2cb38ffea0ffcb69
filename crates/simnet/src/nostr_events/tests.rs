use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use bumpalo::Bump;
use nostr::{Event, Limits};
use nostr_formats::Format;

use super::*;
use crate::nostr_sampling::{SizeClass, TagClass, grouped_lines};

static DEFAULT: LazyLock<Corpus> = LazyLock::new(|| Corpus::generate(&Spec::default()));
static QUICK: LazyLock<Corpus> = LazyLock::new(|| Corpus::generate(&Spec::quick()));

#[test]
fn the_events_are_the_pinned_ones() {
    for (corpus, sha256) in [(&*QUICK, QUICK_SHA256), (&DEFAULT, DEFAULT_SHA256)] {
        let manifest = corpus.manifest(corpus.counts(), &corpus.to_file());
        assert_eq!(manifest.sha256, sha256, "{:?}", corpus.spec());
    }
}

#[test]
fn every_id_and_signature_is_valid() {
    let arena = Bump::new();
    let events: Vec<Event<'_>> =
        DEFAULT.events().iter().map(|event| event.borrow_in(&arena)).collect();
    assert!(nostr::verify_many(&events).iter().all(Result::is_ok));
}

#[test]
fn every_line_decodes_to_its_event() {
    let (arena, file) = (Bump::new(), QUICK.to_file());
    let lines: Vec<&str> = file.strip_suffix('\n').unwrap().split('\n').collect();
    assert_eq!(lines.len(), QUICK.events().len());
    for (line, event) in lines.into_iter().zip(QUICK.events()) {
        let read = Format::Json.decode(line.as_bytes(), &arena, &Limits::default()).unwrap();
        assert_eq!(&read.to_owned(), event);
    }
}

#[test]
fn only_the_longest_values_do_not_fit_every_format_and_no_text_has_a_nul() {
    for event in DEFAULT.events() {
        assert!(event.tags.len() <= Limits::default().tags);
        assert!(event.tags.iter().all(|tag| (1..=255).contains(&tag.len())));
        assert!(texts(event).all(|text| !text.contains('\0')), "{event:?}");
    }
    let arena = Bump::new();
    for format in Format::ALL {
        let is_rejected =
            |event: &&OwnedEvent| format.encode(&event.borrow_in(&arena), &mut Vec::new()).is_err();
        let rejected: Vec<_> = DEFAULT.events().iter().filter(is_rejected).collect();
        let expected =
            usize::from(format.name().strip_suffix("-packed").unwrap_or(format.name()) == "capnp");
        assert_eq!(rejected.len(), expected, "{}", format.name());
        assert!(rejected.iter().all(|event| longest_value(event) >= 32 << 10), "{}", format.name());
    }
}

/// The values of tags and the content.
fn texts(event: &OwnedEvent) -> impl Iterator<Item = &String> {
    event.tags.iter().flatten().chain([&event.content])
}

fn longest_value(event: &OwnedEvent) -> usize {
    event.tags.iter().flatten().map(String::len).max().unwrap_or(0)
}

#[test]
fn a_key_has_two_events_and_a_half_most_have_one_and_the_first_a_tenth_of_all() {
    let mut of_key = BTreeMap::<_, usize>::new();
    DEFAULT.events().iter().for_each(|event| *of_key.entry(event.pubkey).or_default() += 1);
    let per_thousand = |part: usize, of: usize| part * 1000 / of;
    let events = DEFAULT.events().len();
    // 6,232 real events have 2,586 keys, 1,945 of them with one event; the most prolific has 548.
    assert!(is_near(per_thousand(events, of_key.len()), 2_410, 1), "{}", of_key.len());
    let once = per_thousand(of_key.values().filter(|count| **count == 1).count(), of_key.len());
    assert!(is_near(once, 752, 10), "{once}");
    let most = per_thousand(*of_key.values().max().unwrap(), events);
    assert!(is_near(most, 88, 20), "{most}");
}

#[test]
fn tags_have_as_many_names_as_the_real_ones() {
    let names = DEFAULT.events().iter().flat_map(|event| &event.tags).map(|tag| &tag[0]);
    let names: BTreeSet<_> = names.collect();
    assert!(is_near(names.len(), 1_599, 5), "{}", names.len());
}

#[test]
fn the_longest_value_of_a_tag_has_41_kilobytes_and_others_several() {
    let mut lens: Vec<_> = DEFAULT.events().iter().map(longest_value).collect();
    lens.sort_unstable_by_key(|len| std::cmp::Reverse(*len));
    assert!(is_near(lens[0], 41_230, 5), "{:?}", &lens[..9]);
    let long = lens.iter().filter(|len| **len >= 2 << 10).count();
    assert!((6..=30).contains(&long), "{long}");
}

#[test]
fn a_few_events_have_control_characters_that_json_escapes() {
    let escaped = |line: &&str| line.contains("\\u00");
    let file = DEFAULT.to_file();
    let lines = file.lines().filter(escaped).count();
    assert!((3..=30).contains(&lines), "{lines}");
    let is_control = |it: &char| it.is_ascii_control() && !['\n', '\r', '\t'].contains(it);
    let found: BTreeSet<char> = DEFAULT
        .events()
        .iter()
        .flat_map(texts)
        .flat_map(|text| text.chars())
        .filter(is_control)
        .collect();
    assert!(found.len() >= 12, "{found:?}");
}

#[test]
fn events_are_in_order_of_time_and_all_differ() {
    let ids: BTreeSet<_> = DEFAULT.events().iter().map(|event| event.id).collect();
    assert_eq!(ids.len(), DEFAULT.events().len());
    assert!(DEFAULT.events().is_sorted_by_key(|event| event.created_at));
}

/// The lengths of the events' JSON in bytes, ascending.
fn lens<'e>(events: impl IntoIterator<Item = &'e OwnedEvent>) -> Vec<usize> {
    let mut lens: Vec<_> = events
        .into_iter()
        .map(|event| crate::nostr_sampling::json_lines([event]).len() - 1)
        .collect();
    lens.sort_unstable();
    lens
}

fn is_near(value: usize, measured: usize, percent: usize) -> bool {
    value.abs_diff(measured) * 100 <= measured * percent
}

#[test]
fn events_of_each_kind_have_the_measured_lengths() {
    for (kind, measured) in [
        (0, [437, 824, 1257]),
        (1, [648, 1037, 2169]),
        (3, [2821, 44_460, 202_934]),
        (4, [550, 1111, 2086]),
        (5, [560, 633, 1071]),
        (6, [1043, 2173, 3847]),
        (7, [500, 915, 1440]),
        (1059, [2124, 3261, 14_161]),
        (9735, [1848, 2078, 2532]),
        (10002, [432, 609, 5360]),
        (30023, [7355, 18_521, 30_989]),
    ] {
        let lens = lens(DEFAULT.events().iter().filter(|event| event.kind == kind));
        for (percent, measured) in [50, 90, 99].into_iter().zip(measured) {
            let len = lens[(lens.len() - 1) * percent / 100];
            assert!(is_near(len, measured, 16), "kind {kind}, {percent} %: {len} for {measured}");
        }
    }
}

#[test]
fn kinds_have_the_measured_shares() {
    let mut counts = BTreeMap::<u16, usize>::new();
    DEFAULT.events().iter().for_each(|event| *counts.entry(event.kind).or_default() += 1);
    let shares = [(1, 3896), (7, 1889), (4, 563), (0, 473), (3, 454), (6, 440), (9735, 281)];
    for (kind, measured) in shares {
        assert!(is_near(counts[&kind], measured, 5), "kind {kind}: {}", counts[&kind]);
    }
    assert_eq!(counts.len(), 22);
}

#[test]
fn the_mean_event_has_the_measured_length() {
    for (corpus, percent) in [(&*DEFAULT, 8), (&QUICK, 25)] {
        let mean = corpus.to_file().len() / corpus.events().len();
        assert!(is_near(mean, 1644, percent), "{mean}");
    }
    assert!(lens(DEFAULT.events()).last().unwrap() > &300_000);
    let longest = DEFAULT.events().iter().map(|event| event.content.len()).max();
    assert!(longest > Some(100_000), "{longest:?}");
}

#[test]
fn tags_have_the_measured_shares() {
    let tags = || DEFAULT.events().iter().flat_map(|event| &event.tags);
    let values: Vec<&String> = tags().flatten().collect();
    let is_id = |value: &&&String| value.len() == 64 && kernels::hex::is_lower(value.as_bytes());
    let ids = values.iter().filter(is_id).count() * 1000 / values.len();
    assert!(is_near(ids, 370, 6), "{ids}");
    let pairs = tags().filter(|tag| tag.len() == 2).count() * 100 / tags().count();
    assert!((65..=90).contains(&pairs), "{pairs}");
    let named = |name| tags().filter(|tag| tag[0] == name).count();
    let [p, e, t, r, d, a] = ["p", "e", "t", "r", "d", "a"].map(named);
    assert!(
        p > 5 * e && e > t.max(r) && t.min(r) > d && d > a && a > 50,
        "{:?}",
        [p, e, t, r, d, a]
    );
    let most = DEFAULT.events().iter().map(|event| event.tags.len()).max();
    assert!(most > Some(4_000), "{most:?}");
}

#[test]
fn every_class_of_size_and_of_tags_has_about_its_measured_share() {
    let percent = |count: usize| count as f64 * 100.0 / DEFAULT.events().len() as f64;
    let size =
        |class| DEFAULT.events().iter().filter(|event| SizeClass::of(*event) == class).count();
    let tags =
        |class| DEFAULT.events().iter().filter(|event| TagClass::of(*event) == class).count();
    let sizes = SizeClass::ALL.map(|class| percent(size(class)));
    let tags = TagClass::ALL.map(|class| percent(tags(class)));
    for (found, measured) in sizes.iter().zip([22.0, 71.7, 4.8, 1.4, 0.1]) {
        assert!((found - measured).abs() < 8.0 && *found > 0.0, "{sizes:?}");
    }
    for (found, measured) in tags.iter().zip([24.7, 61.9, 11.1, 1.6, 0.8]) {
        assert!((found - measured).abs() < 8.0 && *found > 0.0, "{tags:?}");
    }
}

#[test]
fn groups_have_up_to_a_hundred_events() {
    let names = |file: &str| {
        let name = |line: &str| line.strip_prefix('#').map(str::to_owned);
        file.split('\n').filter_map(name).collect::<Vec<_>>()
    };
    let kinds = ["0", "1", "3", "4", "7", "10002", "30023"].map(|kind| format!("kind-{kind}"));
    assert_eq!(names(&grouped_lines(&DEFAULT.by_kind())), kinds);
    let categories = names(&grouped_lines(&DEFAULT.by_category()));
    assert_eq!(categories.len(), 10);
    assert_eq!((&categories[0][..], &categories[9][..]), ("tiny", "massive"));
    assert!(DEFAULT.by_category().iter().all(|group| (1..=100).contains(&group.events.len())));
}

#[test]
fn text_has_several_scripts_and_characters_that_json_escapes() {
    let has = |wanted: fn(&str) -> bool| {
        DEFAULT.events().iter().filter(|event| wanted(&event.content)).count()
    };
    let many = [
        has(|text| text.contains('\n')),
        has(|text| text.contains('"')),
        has(|text| text.contains('\\')),
        has(|text| text.contains('の')),
        has(|text| text.contains('🤙')),
        has(|text| text.contains("по")),
        has(|text| text.contains("?iv=")),
    ];
    assert!(many.iter().all(|count| *count >= 40), "{many:?}");
    assert!((1_500..2_500).contains(&has(|text| !text.is_ascii())));
}

const QUICK_SHA256: &str = "42ec5373eb0450137e44bb87d70a0d8e7fe9c25b3c700eb16145aafa47133b1e";
const DEFAULT_SHA256: &str = "989834e111aa83c1f581037f7001105fa0e1018e4e95c96595dea15a23050f88";
