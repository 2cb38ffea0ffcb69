//! Which other languages' tools are here, and which does the caller do without?

use std::collections::BTreeSet;

use crate::process;

/// A language that some peers are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Toolchain {
    Go,
    Python,
    Node,
}

impl Toolchain {
    pub(crate) const ALL: [Self; 3] = [Self::Go, Self::Python, Self::Node];

    fn name(self) -> &'static str {
        match self {
            Self::Go => "go",
            Self::Python => "python",
            Self::Node => "node",
        }
    }

    /// The program that tells the version, how it is asked, and what goes before the number.
    fn probe(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Go => ("go", "version", "go version go"),
            Self::Python => ("python3", "--version", "Python "),
            Self::Node => ("node", "--version", "v"),
        }
    }

    /// The oldest version that will do.
    fn least(self) -> (u32, u32) {
        match self {
            Self::Go => (1, 24),
            Self::Python => (3, 11),
            Self::Node => (20, 0),
        }
    }

    /// The beginning of the names of peers in this language.
    pub(crate) fn peer_prefix(self) -> &'static str {
        match self {
            Self::Go => "go-",
            Self::Python => "python-",
            Self::Node => "ts-",
        }
    }

    fn check(self) -> Result<(), String> {
        let (program, question, before) = self.probe();
        let (major, minor) = self.least();
        let advice = format!(
            "install {} {major}.{minor} or newer, or say `--without {}`",
            if self == Self::Go { "Go" } else { program },
            self.name()
        );
        let told = process::output(&mut process::command(program, &[question]))
            .map_err(|error| format!("{error}; {advice}"))?;
        match version(&told, before) {
            Some(found) if found >= self.least() => Ok(()),
            _ => Err(format!("{} is too old; {advice}", told.trim())),
        }
    }
}

/// The first two numbers of a version that stands behind `before`.
fn version(told: &str, before: &str) -> Option<(u32, u32)> {
    let mut numbers = told.trim().strip_prefix(before)?.split(['.', ' ']);
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// The toolchains that the caller does without.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Without(BTreeSet<Toolchain>);

impl Without {
    /// Reads `--without go,python,node`, which may be absent or given more than once.
    pub(crate) fn parse(options: &[&str]) -> Result<Self, String> {
        let mut without = BTreeSet::new();
        let mut options = options.iter();
        while let Some(option) = options.next() {
            let names = match option.strip_prefix("--without") {
                Some("") => *options.next().ok_or("`--without` needs a list of toolchains")?,
                Some(rest) => rest.strip_prefix('=').ok_or_else(|| unknown(option))?,
                None => return Err(unknown(option)),
            };
            for name in names.split(',') {
                let found = Toolchain::ALL.into_iter().find(|toolchain| toolchain.name() == name);
                without.insert(found.ok_or_else(|| format!("no toolchain is called `{name}`"))?);
            }
        }
        Ok(Self(without))
    }

    pub(crate) fn has(&self, toolchain: Toolchain) -> bool {
        !self.0.contains(&toolchain)
    }

    /// Whether the peer of this name needs a toolchain that the caller does without.
    pub(crate) fn excludes(&self, peer: &str) -> bool {
        self.0.iter().any(|toolchain| peer.starts_with(toolchain.peer_prefix()))
    }

    /// Looks for every toolchain that is wanted.
    pub(crate) fn check_the_rest(&self) -> Result<(), String> {
        let wanted = Toolchain::ALL.into_iter().filter(|toolchain| self.has(*toolchain));
        let faults: Vec<String> = wanted.filter_map(|toolchain| toolchain.check().err()).collect();
        if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
    }
}

fn unknown(option: &str) -> String {
    format!("no option is like `{option}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn toolchains_are_left_out_by_name() {
        let without = Without::parse(&["--without", "go,node"]).unwrap();
        assert_eq!(without, Without::parse(&["--without=node", "--without=go"]).unwrap());
        assert!(!without.has(Toolchain::Go) && without.has(Toolchain::Python));
        assert!(without.excludes("go-indigo") && without.excludes("ts-atcute"));
        assert!(!without.excludes("python-atproto") && !without.excludes("rust-raw"));
        assert_eq!(Without::parse(&[]), Ok(Without::default()));
    }

    #[test]
    fn options_that_do_not_exist_are_refused() {
        for options in [&["--without"][..], &["--without", "zig"], &["--with=go"], &["go"]] {
            assert!(Without::parse(options).is_err(), "{options:?}");
        }
        assert!(Without::parse(&["--withoutgo"]).is_err());
    }

    #[test]
    fn versions_are_read_from_what_tools_say() {
        assert_eq!(version("go version go1.26.8 linux/amd64\n", "go version go"), Some((1, 26)));
        assert_eq!(version("Python 3.11.7\n", "Python "), Some((3, 11)));
        assert_eq!(version("v20.20.2", "v"), Some((20, 20)));
        assert_eq!(version("command not found", "v"), None);
    }
}
