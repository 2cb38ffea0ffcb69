//! The documents of the repository, held to the digit against the newest published run.

use std::fs;
use std::path::{Path, PathBuf};

use results::Results;
use wireproof_report::publish;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The name and the results of the newest run in `bench/results`.
fn newest() -> (String, Results) {
    let entries = fs::read_dir(root().join("bench/results")).unwrap();
    let runs = entries.map(|entry| entry.unwrap()).filter_map(|entry| {
        let path = entry.path().join("results.json");
        path.is_file().then(|| {
            (entry.file_name().into_string().unwrap(), wireproof_report::read(&path).unwrap())
        })
    });
    runs.max_by(|(_, a), (_, b)| a.started.cmp(&b.started)).unwrap()
}

#[test]
fn every_number_of_the_documents_is_of_the_published_run() {
    let (run, results) = newest();
    let stale = publish::stale(&root(), &run, &results).unwrap();
    let command = format!("wireproof report bench/results/{run}/results.json --publish .");
    assert!(stale.is_empty(), "differ from the run: {stale:?}; to write them: {command}");
}

#[test]
fn one_changed_digit_in_any_part_of_a_document_is_found() {
    let (run, results) = newest();
    let copy = tempfile::tempdir().unwrap();
    let documents = publish::documents(&root(), &run, &results).unwrap();
    let write = |path: &str, text: &str| {
        let path = copy.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let stale = || publish::stale(copy.path(), &run, &results).unwrap();
    documents.iter().for_each(|document| write(&document.path, &document.text));
    assert_eq!(stale(), Vec::<String>::new());
    let paths: Vec<&str> = documents.iter().map(|document| document.path.as_str()).collect();
    for place in [0.0, 0.5, 1.0] {
        for document in &documents {
            let digits = digits(&document.text);
            let at = digits[(place * (digits.len() - 1) as f64) as usize];
            let mut text = document.text.clone().into_bytes();
            text[at] = b'0' + (text[at] - b'0' + 1) % 10;
            write(&document.path, std::str::from_utf8(&text).unwrap());
        }
        assert_eq!(stale(), paths, "a digit at {place}");
    }
}

/// Where the digits are that the run gives: between markers, or anywhere in a chart.
fn digits(text: &str) -> Vec<usize> {
    let digits = text.bytes().enumerate().filter(|(_, byte)| byte.is_ascii_digit());
    if text.starts_with("<svg") {
        return digits.map(|(at, _)| at).collect();
    }
    let begun = text.match_indices(":begin -->").map(|(at, mark)| at + mark.len());
    let ended =
        text.match_indices(":end -->").map(|(at, _)| text[..at].rfind("<!--").unwrap_or(at));
    let parts: Vec<_> = begun.zip(ended).collect();
    let is_generated =
        |at: usize| parts.iter().any(|(begun, ended)| (*begun..*ended).contains(&at));
    digits.map(|(at, _)| at).filter(|at| is_generated(*at)).collect()
}
