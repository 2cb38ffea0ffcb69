//! The documents of the repository, held to the digit against the newest published runs.

use std::fs;
use std::path::{Path, PathBuf};

use wireproof_report::publish::{self, Run};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The newest run in `bench/results`, and the newest one without AVX-512.
fn newest() -> (Run, Option<Run>) {
    let of = |used_avx512| Run::newest(&root(), used_avx512).unwrap();
    (of(true).unwrap(), of(false))
}

#[test]
fn every_number_of_the_documents_is_of_the_published_runs() {
    let (run, second) = newest();
    let stale = publish::stale(&root(), &run, second.as_ref()).unwrap();
    let command = format!("wireproof report bench/results/{}/results.json --publish .", run.name);
    assert!(stale.is_empty(), "differ from the run: {stale:?}; to write them: {command}");
}

#[test]
fn one_changed_digit_in_any_part_of_a_document_is_found() {
    let (run, second) = newest();
    let copy = tempfile::tempdir().unwrap();
    let documents = publish::documents(&root(), &run, second.as_ref()).unwrap();
    let write = |path: &str, text: &str| {
        let path = copy.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let stale = || publish::stale(copy.path(), &run, second.as_ref()).unwrap();
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
