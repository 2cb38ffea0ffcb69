//! The program as `wireproof` starts it.

use std::process::Command;

fn help_of(arguments: &[&str]) -> String {
    let program = env!("CARGO_BIN_EXE_wireproof-archive");
    let output = Command::new(program).args(arguments).arg("--help").output().expect("a program");
    assert!(output.status.success(), "{arguments:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn the_help_is_that_of_a_command_of_wireproof() {
    assert!(help_of(&["archive", "verify"]).contains("Usage: wireproof archive verify"));
    assert!(help_of(&["--color", "never", "backfill"]).contains("Usage: wireproof backfill"));
}

#[test]
fn commands_of_other_programs_are_named_and_not_run() {
    assert!(help_of(&[]).contains("bench"));
    let program = env!("CARGO_BIN_EXE_wireproof-archive");
    let output = Command::new(program).arg("bench").output().expect("a program");
    assert_eq!(output.status.code(), Some(2));
}
