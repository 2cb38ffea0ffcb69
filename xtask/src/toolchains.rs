//! Toolchains of other languages: which are present, and which the caller does without.

use clap::{Args, ValueEnum};

use crate::process;

/// A language that some peers are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Toolchain {
    Go,
    Python,
    Node,
    Java,
}

impl Toolchain {
    /// The program that prints the version, its argument, and the text before the number.
    fn probe(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Go => ("go", "version", "go version go"),
            Self::Python => ("python3", "--version", "Python "),
            Self::Node => ("node", "--version", "v"),
            Self::Java => ("java", "--version", "openjdk "),
        }
    }

    /// The oldest supported version.
    fn minimum(self) -> (u32, u32) {
        match self {
            Self::Go => (1, 24),
            Self::Python => (3, 11),
            Self::Node => (20, 0),
            Self::Java => (17, 0),
        }
    }

    /// The prefixes in the names of peers that need this toolchain. Zig is a Python package.
    fn peer_prefixes(self) -> &'static [&'static str] {
        match self {
            Self::Go => &["go-"],
            Self::Python => &["python-", "zig-"],
            Self::Node => &["ts-"],
            Self::Java => &[],
        }
    }

    /// The name in `--without`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Go => "go",
            Self::Python => "python",
            Self::Node => "node",
            Self::Java => "java",
        }
    }

    fn check(self) -> Result<(), String> {
        let (program, argument, before) = self.probe();
        let (major, minor) = self.minimum();
        let advice = format!(
            "install {self:?} {major}.{minor} or newer, or pass `--without {}`",
            self.name()
        );
        let output = process::output(&mut process::command(program, &[argument]))
            .map_err(|error| format!("{error}; {advice}"))?;
        match version(&output, before) {
            Some(found) if found >= self.minimum() => Ok(()),
            _ => Err(format!("{} is too old; {advice}", output.trim())),
        }
    }
}

/// The first two numbers of the version that follows `before`.
fn version(output: &str, before: &str) -> Option<(u32, u32)> {
    let mut numbers = output.trim().strip_prefix(before)?.split(['.', ' ']);
    let major = numbers.next()?.parse().ok()?;
    // The first release of a version of Java has no second number.
    Some((major, numbers.next()?.parse().unwrap_or(0)))
}

/// Toolchains that the caller does without.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Without {
    /// Leave out what needs these toolchains.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    without: Vec<Toolchain>,
}

impl Without {
    pub(crate) fn has(&self, toolchain: Toolchain) -> bool {
        !self.without.contains(&toolchain)
    }

    /// The names of the toolchains that are left out.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.without.iter().map(|toolchain| toolchain.name()).collect()
    }

    /// The arguments that this was parsed from.
    pub(crate) fn to_args(&self) -> Vec<String> {
        self.names().iter().map(|name| format!("--without={name}")).collect()
    }

    /// Whether the peer of this name needs a toolchain that is left out.
    pub(crate) fn excludes(&self, peer: &str) -> bool {
        let prefixes = self.without.iter().flat_map(|toolchain| toolchain.peer_prefixes());
        prefixes.into_iter().any(|prefix| peer.starts_with(prefix))
    }

    /// Checks that every other toolchain is present.
    pub(crate) fn check_others(&self) -> Result<(), String> {
        let wanted = Toolchain::value_variants().iter().filter(|toolchain| self.has(**toolchain));
        let faults: Vec<String> = wanted.filter_map(|toolchain| toolchain.check().err()).collect();
        if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        without: Without,
    }

    fn parse(args: &[&str]) -> Option<Without> {
        let args = [&["test"], args].concat();
        Line::try_parse_from(args).ok().map(|line| line.without)
    }

    #[test]
    fn toolchains_are_left_out_by_name() {
        for args in [&["--without", "go,node"][..], &["--without=node", "--without=go"]] {
            let without = parse(args).unwrap();
            assert!(!without.has(Toolchain::Go) && without.has(Toolchain::Python));
            let args = without.to_args();
            let again = parse(&args.iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!(again.unwrap().to_args(), args);
            assert!(without.excludes("go-indigo") && without.excludes("ts-atcute"));
            assert!(!without.excludes("python-atproto") && !without.excludes("rust-raw"));
        }
        assert!(parse(&["--without", "zig"]).is_none());
    }

    #[test]
    fn versions_are_parsed_from_the_output_of_each_tool() {
        assert_eq!(version("go version go1.26.8 linux/amd64\n", "go version go"), Some((1, 26)));
        assert_eq!(version("Python 3.11.7\n", "Python "), Some((3, 11)));
        assert_eq!(version("v20.20.2", "v"), Some((20, 20)));
        assert_eq!(version("openjdk 17.0.15 2025-04-15\n", "openjdk "), Some((17, 0)));
        assert_eq!(version("openjdk 25 2025-09-16\n", "openjdk "), Some((25, 0)));
        assert_eq!(version("command not found", "v"), None);
    }
}
