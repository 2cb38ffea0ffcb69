//! The page of fixed results, and of the published run.

use results::Parity;

use crate::{Options, page, samples};

fn everything() -> String {
    page(&[samples::results()], &Options::default()).unwrap()
}

/// The page without its data and scripts.
fn seen(page: &str) -> &str {
    page.split_once("<body>").unwrap().1.split_once("<script type=\"application/json\"").unwrap().0
}

/// The data of the scripts.
fn data(page: &str) -> serde_json::Value {
    let data = page.split_once("<script type=\"application/json\" id=\"data\">").unwrap().1;
    serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn no_run_has_no_page() {
    assert_eq!(page(&[], &Options::default()), None);
}

#[test]
fn the_page_of_the_published_run_is_small() {
    let page = page(&[samples::published()], &Options::default()).unwrap();
    assert!(page.len() <= 400_000, "{} bytes", page.len());
    let elements = seen(&page).matches('<').count() - seen(&page).matches("</").count();
    assert!(elements <= 6_000, "{elements} elements before anything is opened");
}

#[test]
fn every_measured_row_is_in_the_data_with_each_of_its_passes() {
    let (results, data) = (samples::results(), data(&everything()));
    let rows = || {
        data["tasks"].as_array().unwrap().iter().flat_map(|task| task["rows"].as_array().unwrap())
    };
    let timed = results.rows.iter().filter(|row| row.cases.is_empty() && row.sizes.is_none());
    let passes: Vec<u64> = timed.clone().flat_map(|row| row.passes_ns.clone()).collect();
    assert_eq!(rows().count(), timed.count());
    let shown = rows().flat_map(|row| row[4].as_array().unwrap());
    assert_eq!(shown.map(|ns| ns.as_u64().unwrap()).collect::<Vec<_>>(), passes);
}

#[test]
fn summaries_missing_peers_and_corpora_are_on_the_page_without_scripts() {
    let (results, page) = (samples::results(), everything());
    let page = seen(&page);
    for corpus in &results.corpora {
        assert!(page.contains(&corpus.sha256));
    }
    for row in results.rows.iter().filter(|row| row.is_ranked() && row.task == "decode") {
        assert!(
            page.contains(&format!("<span class=\"name\">{}</span>", row.peer)),
            "{}",
            row.peer
        );
    }
    for part in
        ["python3 is not installed", "All ", "The chain of trust", "Size against speed", "juggle"]
    {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn a_card_compares_one_at_a_time_and_many_in_a_call_with_the_best_other_peer() {
    let page = page(&[samples::published()], &Options::default()).unwrap();
    let card = page.split("<li>").find(|card| card.contains("verify a commit frame")).unwrap();
    let card = card.split_once("</li>").unwrap().0;
    for part in ["× rust-shrike</b>", "one at a time, ", "256 at a time, ", "rust-shrike (full): "]
    {
        assert!(card.contains(part), "{part}: {card}");
    }
}

/// The text of the page in the order of its elements, without markup.
fn text_of(html: &str) -> String {
    let texts = html.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text));
    texts.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_reader_sees_a_number_first() {
    let only_ours = |task: &str| {
        let mut results = samples::published();
        results.rows.retain(|row| row.task == task && row.peer == results::PEER);
        results
    };
    let runs = [
        (samples::published(), "× the fastest other"),
        (samples::results(), "× the fastest other"),
        (only_ours("decode"), "frames/s"),
        (only_ours("repo"), "ms"),
        (only_ours("hostile"), "rows"),
    ];
    for (results, unit) in runs {
        let page = page(&[results], &Options::default()).unwrap();
        let text = text_of(seen(&page).split_once("<header>").unwrap().1);
        let words: Vec<&str> = text.split_whitespace().collect();
        let at =
            words.iter().position(|word| word.starts_with(|letter: char| letter.is_ascii_digit()));
        let at = at.unwrap();
        assert!(at < 4, "{at} words before the first number: {:?}", &words[..at]);
        assert!(words[at + 1..].join(" ").starts_with(unit), "{:?}", &words[at..at + 5]);
        let block = seen(&page).split_once("class=\"where\"").unwrap().0;
        assert!(block.contains("<p class=\"mean\"><strong>"), "the figure is in the first block");
    }
}

#[test]
fn every_ratio_on_the_page_names_its_other() {
    let published = page(&[samples::published()], &Options::default()).unwrap();
    assert!(text_of(seen(&published)).contains("11.3 × go-indigo"));
    for results in [samples::published(), samples::results()] {
        let page = page(&[results.clone(), results], &Options::default()).unwrap();
        let text = text_of(seen(&page));
        let ends = text.split('×').skip(1).map(str::trim_start);
        for after in ends {
            let is_name = after.starts_with(|letter: char| letter.is_ascii_alphabetic());
            assert!(is_name, "{after:.60}");
        }
        for class in ["class=\"ratio\">", "class=\"other\">"] {
            let cells =
                seen(&page).split(class).skip(1).map(|cell| cell.split('<').next().unwrap());
            for cell in cells {
                assert!(cell.contains(" × ") || cell == "–", "{cell}");
            }
        }
    }
}

#[test]
fn a_peer_that_could_not_be_built_is_one_plain_line() {
    let page = page(&[samples::published()], &Options::default()).unwrap();
    let line = "<li><b>zig-zat</b>: not measured: its source could not be downloaded</li>";
    assert!(seen(&page).contains(line));
    assert!(!seen(&page).contains("build.log") && !seen(&page).contains("NoAddressReturned"));
}

#[test]
fn the_words_of_the_page_are_plain() {
    let page = page(&[samples::published()], &Options::default()).unwrap();
    let text = text_of(seen(&page)).to_lowercase();
    for words in ["what was", "those of ", "those that ", " that of ", " beside "] {
        let at = text.find(words);
        assert!(at.is_none(), "{}", &text[at.unwrap().saturating_sub(80)..][..160]);
    }
}

#[test]
fn a_column_of_the_corpora_has_one_unit() {
    let page = everything();
    let table = page.split_once("The input files</caption>").unwrap().1;
    let table = table.split_once("</table>").unwrap().0;
    for cell in table.split("class=\"number\">").skip(1) {
        let number = cell.split('<').next().unwrap();
        let is_number = number.chars().all(|letter| letter.is_ascii_digit() || letter == ',');
        assert!(is_number || ["bytes", "units"].contains(&number), "{number}");
    }
}

#[test]
fn work_at_which_another_peer_is_faster_is_named_on_top() {
    let mut results = samples::results();
    for row in results.rows.iter_mut().filter(|row| row.peer == results::PEER) {
        for pass in &mut row.passes_ns {
            *pass *= 1_000;
        }
        row.per_s = results::Rate::of(row.units, &row.passes_ns);
    }
    results::terminal::sort(&mut results.rows);
    let page = page(&[results], &Options::default()).unwrap();
    assert!(page.contains("Slower than another peer, one at a time: decode verified"));
    assert!(page.contains("class=\"lost\"><strong>"));
    assert!(!seen(&everything()).contains("Slower than another peer, one at a time: decode"));
}

#[test]
fn checks_and_counts_are_two_columns_and_no_row_is_called_equal() {
    let mut results = samples::results();
    let at = results.rows.iter().position(|row| row.task == "repo" && row.is_ranked()).unwrap();
    results.rows[at].checks = vec!["cid-sha256".to_owned(), "low-s".to_owned()];
    assert_eq!(results.rows[at].parity, Parity::Ok);
    let page = page(&[results], &Options::default()).unwrap();
    assert!(seen(&page).contains(">2 of 20</td>"));
    assert!(!seen(&page).contains(">equal<"));
}

#[test]
fn a_virtual_machine_is_called_one() {
    let mut results = samples::results();
    results.machine.virtual_machine = Some("QEMU".to_owned());
    let page = page(&[results], &Options::default()).unwrap();
    assert!(seen(&page).contains("a virtual machine (QEMU) with "));
}

#[test]
fn hostile_sums_name_the_version_and_the_call() {
    let page = page(&[samples::published()], &Options::default()).unwrap();
    let sums = page.split_once("What each peer does with invalid").unwrap().1;
    let sums = sums.split_once("</table>").unwrap().0;
    assert!(sums.contains(">0.8.2<") && sums.contains("Repo::load_car"));
    assert!(!sums.contains("see bench/BIAS.md"), "a call is not named");
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
    assert!(page.contains("ratios to rust-raw verified/arena-reuse"));
}

#[test]
fn sizes_of_a_part_of_the_corpus_are_in_the_data_and_not_among_those_of_the_whole() {
    let mut results = samples::results();
    let at = results.rows.iter().position(|row| row.sizes.is_some()).unwrap();
    let mut part = results.rows[at].clone();
    part.variant.push_str("@of-one-kind");
    results.rows.insert(at, part);
    let page = page(&[results], &Options::default()).unwrap();
    let sizes = data(&page)["sizes"].as_array().unwrap().clone();
    assert!(sizes.iter().any(|size| size["part"] == "of-one-kind"));
    assert!(!seen(&page).contains("@of-one-kind"));
}

#[test]
fn sizes_of_real_events_stand_below_those_of_their_format_and_name_what_it_cannot_hold() {
    let mut results = samples::results();
    let sized: Vec<_> = results.rows.iter().filter(|row| row.sizes.is_some()).cloned().collect();
    let json = sized.iter().find(|row| row.variant == "json").unwrap().clone();
    for mut row in sized {
        row.variant.push_str("@real");
        row.unheld = 1;
        row.json_sizes = json.sizes;
        row.note = Some("without 1 event that it cannot hold: abcdef".to_owned());
        results.rows.push(row);
    }
    results.rows.sort_by(|a, b| a.task.cmp(&b.task));
    let page = page(&[results], &Options::default()).unwrap();
    let text = seen(&page);
    let at = |text: &str, name: &str| text.find(&format!(">{name}<")).unwrap();
    let table = &text[text.find("class=\"sizes\"").unwrap_or_default()..];
    assert!(at(table, "json@real") > at(table, "json"));
    assert!(page.contains("without 1 event that it cannot hold: abcdef"));
    assert!(!data(&page)["sizes"].to_string().contains("real"));
}

#[test]
fn only_a_proof_is_called_a_chain_of_trust() {
    let mut results = samples::results();
    results.rows.retain(|row| !row.stages_ns.is_empty() && row.task == "repo");
    for row in &mut results.rows {
        row.stages_ns = [("kind-1".to_owned(), row.passes_ns.clone())].into();
    }
    let page = page(&[results], &Options::default()).unwrap();
    assert!(page.contains("Part by part") && !page.contains("The chain of trust, in"));
}
