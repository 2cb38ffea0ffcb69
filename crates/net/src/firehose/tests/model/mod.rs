//! The follower against a model, under random schedules.
//!
//! | module | contents |
//! |---|---|
//! | [`world`] | accounts, their signed histories, the streams of hosts; the truth about every event |
//! | [`schedule`] | random settings and steps, from a seed; the shrinking of a schedule |
//! | [`reference`] | the model, which finds broken rules |
//! | [`environment`] | scripted lookups, handler, journal and connection |
//! | [`follower`] | the real parts of a run, stepped on one thread under a paused clock |
//! | [`play`] | a schedule from its first step to the end |
//!
//! A failing schedule prints its seed, the steps that are left after shrinking, and the broken rule. The same seed
//! always has the same outcome. `WIREPROOF_MODEL_SCHEDULES` is the number of schedules, `WIREPROOF_MODEL_SEED` the
//! first seed; see `cargo xtask soak --help`.

mod environment;
mod follower;
mod play;
mod reference;
mod schedule;
mod world;

use environment::Counts;
use play::{play, play_traced};
use schedule::{Schedule, Step, shrink};

/// Plays a schedule, and shrinks it if it breaks a rule.
fn check(seed: u64, counts: &mut Counts) {
    let repeat = format!("cargo xtask soak model --seed {seed} --schedules 1");
    check_schedule(&repeat, &Schedule::new(seed), counts);
}

fn check_schedule(repeat: &str, schedule: &Schedule, counts: &mut Counts) {
    let Err(violation) = play(schedule, counts) else { return };
    let shortest = shrink(schedule, |shorter| play(shorter, &mut Counts::new()).is_err());
    let shortest_violation = play(&shortest, &mut Counts::new()).err();
    let shortest_violation = shortest_violation.unwrap_or("it breaks no rule again".to_owned());
    let steps: Vec<String> = shortest.steps.iter().map(|step| format!("{step:?}")).collect();
    panic!(
        "seed {}: {violation}\n{} of {} steps are left, with {:?}:\n  {}\n{shortest_violation}\n\
         repeat with: {repeat}",
        schedule.settings.seed,
        steps.len(),
        schedule.steps.len(),
        shortest.settings,
        steps.join("\n  "),
    );
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn the_follower_does_what_the_model_allows_under_random_schedules() {
    let first = variable("WIREPROOF_MODEL_SEED").unwrap_or(1);
    let count = variable("WIREPROOF_MODEL_SCHEDULES").unwrap_or(SCHEDULES);
    let mut counts = Counts::new();
    for seed in first..first + count {
        check(seed, &mut counts);
        let done = seed + 1 - first;
        if done.is_multiple_of(10_000) {
            eprintln!("{done} schedules");
        }
    }
    eprintln!("{count} schedules from seed {first}: {counts:#?}");
}

#[test]
fn a_kill_after_any_step_loses_nothing() {
    let (mut counts, repeat) = (Counts::new(), "cargo test -p wireproof-net --lib a_kill_after");
    for seed in 0..KILLED_SCHEDULES {
        let schedule = Schedule::new(u64::MAX - seed);
        for at in 0..=schedule.steps.len() {
            let mut killed = schedule.clone();
            killed.steps.insert(at, Step::Kill { keeps_keys: at % 2 == 0 });
            check_schedule(repeat, &killed, &mut counts);
        }
    }
}

#[test]
fn a_schedule_has_the_same_outcome_each_time() {
    for seed in 0..variable("WIREPROOF_MODEL_SCHEDULES").unwrap_or(20) {
        let trace = || play_traced(&Schedule::new(seed), &mut Counts::new()).1;
        let (first, second) = (trace(), trace());
        let differs = first.iter().zip(&second).position(|(a, b)| a != b);
        let around =
            |trace: &[String]| trace[differs.unwrap_or_default().saturating_sub(50)..].join("\n");
        assert!(first == second, "seed {seed}:\n{}\n\n{}", around(&first), around(&second));
    }
}

/// Number of schedules of a short run.
const SCHEDULES: u64 = 400;

/// Number of schedules that are killed after every step.
const KILLED_SCHEDULES: u64 = 2;
