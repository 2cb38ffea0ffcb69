//! The page of fixed results.

use crate::{Options, page, samples};

fn everything() -> String {
    page(&[samples::results()], &Options::default()).unwrap()
}

/// The page without its data and scripts.
fn seen(page: &str) -> &str {
    page.split_once("<body>").unwrap().1.split_once("<script type=\"application/json\"").unwrap().0
}

#[test]
fn no_run_has_no_page() {
    assert_eq!(page(&[], &Options::default()), None);
}

#[test]
fn every_row_and_every_missing_peer_is_on_the_page_without_scripts() {
    let (results, page) = (samples::results(), everything());
    let page = seen(&page);
    let rows = page.matches("data-row=").count();
    let timed = results.rows.iter().filter(|row| row.cases.is_empty() && row.sizes.is_none());
    assert_eq!(rows, timed.count());
    for corpus in &results.corpora {
        assert!(page.contains(&corpus.sha256));
    }
    for part in
        ["python3 is not installed", "All ", "The chain of trust", "Size against speed", "juggle"]
    {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn what_a_peer_answers_never_becomes_markup() {
    let page = everything();
    assert!(seen(&page).contains("&lt;/script&gt;&lt;script&gt;"), "it is shown as it is");
    assert!(!page.contains("<img") && !page.contains("</script><script>document.title"));
    // The data and our own script.
    assert_eq!(page.matches("<script").count(), 2);
    assert_eq!(page.matches("</script").count(), 2);
}

#[test]
fn the_page_names_nothing_that_would_be_fetched() {
    let page = everything();
    for part in ["<link", "<iframe", "src=\"", "url(", "@import"] {
        assert!(!seen(&page).contains(part), "{part}");
    }
}

#[test]
fn several_runs_show_the_ratios_of_each_by_time() {
    let (mut old, new) = (samples::results(), samples::results());
    old.started = "2026-10-01T00:00:00Z".to_owned();
    let page = page(&[new, old], &Options::default()).unwrap();
    let history = page.split_once("id=\"history\"").unwrap().1;
    assert!(history.find("1 October 2026").unwrap() < history.find("November 2026").unwrap());
    assert!(!seen(&everything()).contains("id=\"history\""), "one run has none");
}

#[test]
fn ratios_are_held_against_the_peer_that_is_chosen() {
    let baseline = Some("rust-raw".parse().unwrap());
    let page = page(&[samples::results()], &Options { baseline }).unwrap();
    assert!(page.contains("ratio to rust-raw verified/arena-reuse"));
}

#[test]
fn sizes_of_a_part_of_the_corpus_stand_behind_its_name_by_a_scale_of_their_own() {
    let mut results = samples::results();
    let size = |row: &bench::Row| row.sizes.map(|sizes| sizes.raw / row.units.max(1));
    let at = (0..results.rows.len()).max_by_key(|at| size(&results.rows[*at])).unwrap();
    let mut part = results.rows[at].clone();
    part.variant.push_str("@of-one-kind");
    part.sizes.as_mut().unwrap().raw /= 2;
    results.rows.insert(at, part);
    let page = page(&[results], &Options::default()).unwrap();
    let sizes = page.split_once("class=\"sizes\"").unwrap().1.split_once("</table>").unwrap().0;
    let (all, of_one_kind) = sizes.split_once(">of-one-kind</th>").unwrap();
    // The longest of each fills the width.
    for part in [all, of_one_kind] {
        assert!(
            part.contains("class=\"bar faint\"") && part.contains("width=\"100.00%\""),
            "{part}"
        );
    }
    assert!(!sizes.contains("@of-one-kind"));
}

#[test]
fn only_a_proof_is_called_a_chain_of_trust() {
    let mut results = samples::results();
    results.rows.retain(|row| !row.stages_ns.is_empty());
    for row in &mut results.rows {
        row.stages_ns = [("kind-1".to_owned(), row.passes_ns.clone())].into();
    }
    let page = page(&[results], &Options::default()).unwrap();
    assert!(page.contains("Part by part") && !page.contains("The chain of trust, in"));
}
