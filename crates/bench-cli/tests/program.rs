//! The program as `wireproof` starts it.

use std::process::Command;

fn help_of(arguments: &[&str]) -> String {
    let program = env!("CARGO_BIN_EXE_wireproof-bench");
    let output = Command::new(program).args(arguments).arg("--help").output().expect("a program");
    assert!(output.status.success(), "{arguments:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn the_help_is_that_of_a_command_of_wireproof() {
    for command in ["bench", "report", "corpus", "sim"] {
        let usage = format!("Usage: wireproof {command}");
        assert!(help_of(&[command]).contains(&usage), "{command}");
    }
}
