//! `report` and `bench compare`: output, files and exit codes.
//!
//! The results are the fixture of crate `report`: some rows of every task, and peers that send markup.

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::assert::Assert;
use serde_json::Value;
use tempfile::TempDir;

use crate::{command, stderr, stdout};

/// A folder with files of results.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Changed results in a file of this name.
    fn results(&self, name: &str, change: impl FnOnce(&mut Value)) -> String {
        let everything = concat!(env!("CARGO_MANIFEST_DIR"), "/../report/fixtures/everything.json");
        let mut results = serde_json::from_slice(&fs::read(everything).unwrap()).unwrap();
        change(&mut results);
        self.file(name, &serde_json::to_string(&results).unwrap())
    }

    fn file(&self, name: &str, text: &str) -> String {
        fs::write(self.path(name), text).unwrap();
        self.path(name).to_str().unwrap().to_owned()
    }

    fn run(&self, args: &[&str]) -> Assert {
        let mut command = command(args);
        command.current_dir(self.0.path()).env("XDG_CONFIG_HOME", "/nonexistent");
        command.assert()
    }

    fn report(&self, args: &[&str]) -> Assert {
        self.run(&[&["report"], args].concat())
    }

    fn compare(&self, args: &[&str]) -> Assert {
        self.run(&[&["bench", "compare"], args].concat())
    }

    /// The page that `report` writes to its default folder.
    fn page(&self) -> String {
        fs::read_to_string(self.path("report/index.html")).unwrap()
    }
}

fn unchanged(_: &mut Value) {}

/// Makes every pass of a row slower by a factor.
fn slow_down(results: &mut Value, [task, peer, variant]: [&str; 3], times: f64) {
    let rows = results["rows"].as_array_mut().unwrap();
    let is_it =
        |row: &&mut Value| row["task"] == task && row["peer"] == peer && row["variant"] == variant;
    let row = rows.iter_mut().find(is_it).unwrap();
    for pass in row["passes_ns"].as_array_mut().unwrap() {
        *pass = Value::from((pass.as_f64().unwrap() * times) as u64);
    }
    for speed in row["per_s"].as_object_mut().unwrap().values_mut() {
        *speed = Value::from(speed.as_f64().unwrap() / times);
    }
    row["mb_per_s"] = Value::from(row["mb_per_s"].as_f64().unwrap() / times);
}

/// A row that is not a baseline.
const OURS: [&str; 3] = ["decode", "wireproof", "verified/arena-reuse"];
/// The same row, as a comparison names it.
const SHOWN: &str = "decode wireproof verified/arena-reuse";

#[test]
fn a_page_is_written_and_its_path_is_the_last_line() {
    let folder = Folder::new();
    let results = folder.results("a.json", unchanged);
    let printed = folder.report(&[&results]).success();
    assert_eq!((&*stdout(&printed), &*stderr(&printed)), ("report/index.html\n", ""));
    let page = folder.page();
    assert!(
        page.starts_with("<!doctype html>") || page.starts_with("<!DOCTYPE html>"),
        "{page:.60}"
    );
    assert!(page.contains("verified/arena-reuse") && page.contains("Content-Security-Policy"));

    let out = folder.path("elsewhere/deep");
    let out = out.to_str().unwrap();
    let printed = folder.report(&[&results, "--out", out]).success();
    assert_eq!(stdout(&printed), format!("{out}/index.html\n"));
    assert_eq!(fs::read_to_string(Path::new(out).join("index.html")).unwrap(), page);
}

#[test]
fn charts_go_to_their_folder_and_the_page_only_if_it_is_requested() {
    let folder = Folder::new();
    let results = folder.results("a.json", unchanged);
    let printed = stdout(&folder.report(&[&results, "--svg", "charts"]).success());
    assert!(printed.lines().count() > 1 && !folder.path("report").exists());
    for path in printed.lines() {
        assert!(path.starts_with("charts/") && path.ends_with(".svg"), "{path}");
        let svg = fs::read_to_string(folder.path(path)).unwrap();
        assert!(svg.starts_with("<svg") && svg.contains("<title"), "{path}");
    }
    let both = stdout(&folder.report(&[&results, "--svg", "charts", "--out", "page"]).success());
    assert_eq!(both, format!("{printed}page/index.html\n"));
}

#[test]
fn of_several_runs_the_newest_is_shown_and_the_ratios_of_all() {
    let folder = Folder::new();
    let started = |folder: &Folder, name: &str, day: &str| {
        folder.results(name, |results| results["started"] = Value::from(day))
    };
    let old = started(&folder, "old.json", "2026-01-02T03:04:05Z");
    let new = started(&folder, "new.json", "2026-03-04T05:06:07Z");
    folder.report(&[&new]).success();
    let alone = folder.page();
    for order in [[&*old, &*new], [&*new, &*old]] {
        folder.report(&order).success();
        let page = folder.page();
        assert!(page.contains("2 January 2026") && page.contains("4 March 2026"));
        assert!(page.len() > alone.len());
    }
    assert!(!alone.contains("2 January 2026"));
}

#[test]
fn a_file_without_results_is_refused_with_its_field_and_no_page_is_written() {
    let folder = Folder::new();
    let whole = fs::read_to_string(folder.results("whole.json", unchanged)).unwrap();
    let other = folder.results("other.json", |all| all["schema"] = "wireproof-bench/9".into());
    let cut = folder.file("cut.json", &whole[..whole.len() / 2]);
    let many = folder.results("many.json", |all| all["rows"][0]["units"] = "many".into());
    let none = folder.file("none.json", "[]");
    let text = folder.file("text.json", "not JSON");
    for (path, words, code) in [
        (&*other, "schema: this is \"wireproof-bench/9\", and this program reads", 1),
        (&cut, "cut short", 1),
        (&many, "rows[0].units: invalid type: string \"many\"", 1),
        (&none, "schema: ", 1),
        (&text, "not JSON", 1),
        ("missing.json", "No such file", 4),
    ] {
        let good = folder.path("whole.json");
        let good = good.to_str().unwrap();
        for failed in
            [folder.report(&[path]), folder.compare(&[good, path]), folder.compare(&[path, good])]
        {
            let failed = failed.code(code);
            let printed = stderr(&failed);
            assert!(printed.starts_with(&format!("wireproof: {path}: ")), "{printed}");
            assert!(printed.contains(words), "{words}: {printed}");
            assert_eq!((printed.lines().count(), &*stdout(&failed)), (1, ""));
        }
    }
    assert!(!folder.path("report").exists());
}

#[test]
fn rows_of_unknown_tasks_are_shown_as_a_table() {
    let folder = Folder::new();
    let results = folder.results("a.json", |all| {
        let mut row = all["rows"][0].clone();
        (row["task"], row["variant"]) = ("weave".into(), "on-a-loom".into());
        all["rows"].as_array_mut().unwrap().push(row);
    });
    folder.report(&[&results]).success();
    let page = folder.page();
    assert!(page.contains("weave") && page.contains("on-a-loom"));
}

#[test]
fn results_without_rows_give_a_page_and_no_files_a_usage_error() {
    let folder = Folder::new();
    let results = folder.results("a.json", |all| {
        all["rows"] = Value::Array(vec![]);
        all["unavailable"] = Value::Array(vec![]);
    });
    folder.report(&[&results, "--svg", "charts"]).success();
    folder.report(&[&results]).success();
    assert!(folder.page().contains("</html>"));
    let usage = folder.report(&[]).code(2);
    assert!(stderr(&usage).contains("RESULTS.json"), "{}", stderr(&usage));
}

#[test]
fn text_from_peers_is_escaped_in_pages_charts_and_lines() {
    let folder = Folder::new();
    let markup = "<img src=x onerror=alert(1)>\u{1b}[31m";
    let change = |all: &mut Value| {
        for row in all["rows"].as_array_mut().unwrap() {
            if row["peer"] == "rust-rsky" {
                (row["peer"], row["note"]) = (markup.into(), markup.into());
            }
        }
        all["machine"]["cpu"] = markup.into();
    };
    let old = folder.results("old.json", change);
    let pictures = stdout(&folder.report(&[&old, "--svg", "charts", "--out", "report"]).success());
    assert!(folder.page().contains("&lt;img src=x"));
    for path in pictures.lines() {
        let text = fs::read_to_string(folder.path(path)).unwrap();
        assert!(!text.contains("<img src=x") && !text.contains('\u{1b}'), "{path}");
    }
    let new = folder.results("new.json", |all| {
        change(all);
        slow_down(all, ["decode", markup, "verified"], 3.0);
    });
    let printed = stdout(&folder.compare(&[&old, &new]).success());
    assert!(printed.contains("<img src=x") && !printed.contains('\u{1b}'), "{printed}");
}

#[test]
fn a_run_that_may_not_be_published_is_refused_with_the_reason_and_nothing_is_written() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("bench/results/a-run")).unwrap();
    let run = folder.results("bench/results/a-run/results.json", |all| {
        all["settings"]["quick"] = true.into();
    });
    let refused = folder.report(&[&run, "--publish", "."]).code(1);
    assert!(stderr(&refused).contains("it is a quick run"), "{}", stderr(&refused));
    let elsewhere = folder.results("a.json", unchanged);
    let usage = folder.report(&[&elsewhere, "--publish", "."]).code(2);
    assert!(stderr(&usage).contains("a published run is"), "{}", stderr(&usage));
    assert!(!folder.path("docs").exists());
}

#[test]
fn a_regression_beyond_the_tolerance_is_exit_code_1_and_listed() {
    let folder = Folder::new();
    let old = folder.results("old.json", unchanged);
    let slower = folder.results("slower.json", |all| slow_down(all, OURS, 2.0));
    let same = stdout(&folder.compare(&[&old, &old]).success());
    assert!(same.contains("0 moved beyond their spread"), "{same}");

    let worse = folder.compare(&[&old, &slower]).code(1);
    let row = SHOWN;
    assert!(stdout(&worse).starts_with(&format!("REGRESSION  {row}: ")), "{}", stdout(&worse));
    assert_eq!(
        stderr(&worse),
        format!("wireproof: {slower}: regressed; the lines above name the rows\n")
    );
    // Half is lost and tolerated; rows of other peers count only with --peers.
    let tolerated = stdout(&folder.compare(&[&old, &slower, "--tolerance", "0.6"]).success());
    assert!(tolerated.starts_with(&format!("slower      {row}: ")), "{tolerated}");
    folder.compare(&[&old, &slower, "--peers", "rust-rsky"]).success();
    let better = stdout(&folder.compare(&[&slower, &old]).success());
    assert!(better.contains(&format!("faster      {row}: ")), "{better}");
}

#[test]
fn a_row_that_lost_its_rank_is_a_regression() {
    let folder = Folder::new();
    let old = folder.results("old.json", unchanged);
    let lost = folder.results("lost.json", |all| {
        let rows = all["rows"].as_array_mut().unwrap();
        let row = rows.iter_mut().find(|row| row["variant"] == OURS[2] && row["peer"] == OURS[1]);
        let row = row.unwrap();
        (row["parity"], row["note"]) = ("mismatch".into(), "another count".into());
    });
    let printed = folder.compare(&[&old, &lost]).code(1);
    let line = format!("{SHOWN}: ranked before, and not any more: another count");
    assert!(stdout(&printed).contains(&line), "{}", stdout(&printed));
}

#[test]
fn a_tolerance_is_a_part_of_one() {
    let folder = Folder::new();
    let results = folder.results("a.json", unchanged);
    for tolerance in ["1", "-0.1", "much", "NaN"] {
        let argument = format!("--tolerance={tolerance}");
        let usage = folder.compare(&[&results, &results, &argument]).code(2);
        assert!(stderr(&usage).contains("--tolerance"), "{}", stderr(&usage));
    }
    folder.compare(&[&results, &results, "--tolerance=0"]).success();
    folder.compare(&[&results]).code(2);
}
