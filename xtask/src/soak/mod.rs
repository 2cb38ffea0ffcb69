//! What only shows after a long time: are events lost, does memory grow, how fast is it?
//!
//! The tests are those that `cargo xtask test` runs shortened; here they are whole, in an optimised
//! build. What they found stands in docs/reliability.md.

mod speed;

use crate::process;

/// What to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// Measures instead of testing.
    is_speed: bool,
    /// The tests with one of these in their names; all if there are none.
    tests: Vec<String>,
}

impl Options {
    pub(crate) fn parse(args: &[&str]) -> Result<Self, String> {
        let mut options = Self::default();
        for arg in args {
            match *arg {
                "--speed" => options.is_speed = true,
                option if option.starts_with('-') => return Err(format!("no option is {option}")),
                test => options.tests.push(test.to_owned()),
            }
        }
        match options.is_speed && !options.tests.is_empty() {
            true => Err("--speed measures, and takes no test".to_owned()),
            false => Ok(options),
        }
    }
}

/// Runs it.
pub(crate) fn run(options: &Options) -> Result<(), String> {
    if options.is_speed {
        return speed::measure();
    }
    let args = ["test", "--profile", "soak", "-p", "wireproof-cli", "--test", "reliability", "--"];
    let mut command = process::command("cargo", &args);
    // One after the other: what is measured of one is not to be of another.
    command.args(["--test-threads", "1", "--nocapture"]).args(&options.tests);
    process::run(command.env("WIREPROOF_SOAK", "1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_named_and_a_measurement_is_asked_for_alone() {
        assert_eq!(Options::parse(&[]), Ok(Options::default()));
        let named = Options { tests: vec!["slow".to_owned()], ..Options::default() };
        assert_eq!(Options::parse(&["slow"]), Ok(named));
        assert!(Options::parse(&["--speed"]).unwrap().is_speed);
        assert!(Options::parse(&["--speed", "slow"]).is_err());
        assert!(Options::parse(&["--fast"]).is_err());
    }
}
