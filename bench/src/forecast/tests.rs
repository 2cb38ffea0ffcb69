//! Runs that never took place, told step by step.

use super::*;

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn forecast(passes: u32) -> Forecast {
    let peers = Some(vec!["a".to_owned(), "b".to_owned()]);
    let tasks = vec![Task::Decode, Task::Hostile];
    Forecast::of(&Plan { tasks, peers, warmup: 0, passes, ..Plan::default() })
}

fn building(done: u64) -> Progress<'static> {
    Progress::Building { peer: "a", done, total: 2 }
}

fn proving(row: u64) -> Progress<'static> {
    Progress::Proving { peer: "a", variant: "v", row, rows: 2 }
}

fn pass(row: u64) -> Progress<'static> {
    Progress::Pass { peer: "a", variant: "v", row, done: 0, total: 0 }
}

fn case(done: u64) -> Progress<'static> {
    Progress::Case { peer: "a", case: "c", done, total: 10 }
}

/// A run whose two rows take one and nine seconds, proved by the second 20.
fn proved(passes: u32, cases: u64) -> Forecast {
    let mut forecast = forecast(passes);
    forecast.observe(&building(0), s(0));
    forecast.observe(&building(1), s(5));
    forecast.observe(&Progress::Known { rows: 2, cases }, s(10));
    forecast.observe(&proving(0), s(10));
    forecast.observe(&proving(1), s(11));
    forecast.observe(&pass(0), s(20));
    forecast
}

#[test]
fn a_step_takes_what_the_steps_of_its_stage_took() {
    let mut forecast = forecast(1);
    forecast.observe(&building(0), s(0));
    forecast.observe(&building(1), s(30));
    assert_eq!(forecast.left(BUILDS, s(30)), s(30));
}

#[test]
fn a_pass_takes_what_its_row_took_to_prove_and_not_what_rows_take_in_the_mean() {
    let mut forecast = proved(3, 0);
    assert_eq!(forecast.estimate(s(20)), Estimate { done: 0.4, left: s(30) });
    forecast.observe(&pass(1), s(21));
    assert_eq!(forecast.estimate(s(21)).left, s(29));
}

#[test]
fn a_row_that_is_faster_than_its_proof_was_makes_what_is_left_shorter() {
    let mut forecast = proved(3, 0);
    forecast.observe(&pass(1), s(21));
    forecast.observe(&pass(0), s(25));
    assert_eq!(forecast.estimate(s(25)).left, s(10), "two more rounds of one and four seconds");
}

#[test]
fn a_row_of_a_task_that_is_to_come_takes_what_the_others_take() {
    let mut forecast = forecast(1);
    forecast.observe(&Progress::Known { rows: 2, cases: 0 }, s(0));
    forecast.observe(&proving(0), s(0));
    forecast.observe(&pass(0), s(10));
    assert_eq!(forecast.estimate(s(10)).left, s(10) + s(20));
    forecast.observe(&proving(1), s(20));
    assert_eq!(forecast.estimate(s(20)).left, s(20), "its proof, and its pass");
}

#[test]
fn time_goes_on_within_a_pass() {
    let mut forecast = proved(1, 0);
    forecast.observe(&pass(1), s(21));
    assert_eq!(forecast.estimate(s(24)).left, s(6));
    assert_eq!(forecast.estimate(s(60)).left, s(0), "it takes longer than it was thought to");
}

#[test]
fn hostile_cases_are_a_part_of_the_whole_before_they_begin() {
    assert_eq!(proved(1, 100).estimate(s(20)).left, s(10) + 100 * USUAL_CASE);
    let mut forecast = proved(1, 10);
    forecast.observe(&pass(1), s(21));
    forecast.observe(&case(1), s(30));
    forecast.observe(&case(5), s(40));
    assert_eq!(forecast.left(CASES, s(40)), s(10));
    forecast.observe(&case(10), s(50));
    assert_eq!(forecast.estimate(s(50)), Estimate { done: 1.0, left: s(0) });
}

#[test]
fn what_is_done_never_shrinks() {
    let mut forecast = proved(1, 10);
    let before = forecast.estimate(s(21)).done;
    forecast.observe(&case(1), s(22));
    assert!(forecast.left(CASES, s(2_000)) > s(1_000));
    assert!(forecast.estimate(s(2_000)).done >= before);
}

#[test]
fn a_run_that_has_said_nothing_yet_has_all_before_it() {
    let Estimate { done, left } = forecast(5).estimate(s(0));
    assert_eq!(done, 0.0);
    assert!(left > s(1));
}

#[test]
fn each_file_that_is_made_is_a_step_whatever_its_length() {
    let tasks = vec![Task::Decode, Task::Mst, Task::Repo];
    let mut forecast = Forecast::of(&Plan { tasks, ..Plan::default() });
    for (name, done) in [("a", 0), ("a", 50), ("b", 0), ("b", 100), ("c", 0), ("c", 50)] {
        forecast.observe(&Progress::Corpus { name, done, total: 100 }, s(10));
    }
    assert_eq!(forecast.stages[CORPORA].done, 2.5);
}
