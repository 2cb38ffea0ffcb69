//! Variables of the environment that look like an option and are none.

use std::collections::BTreeSet;
use std::env;

use clap::Command;

/// Warnings about variables whose names are almost an option's. `all` has the options of all programs.
pub(super) fn misspelt(own: &Command, all: impl FnOnce() -> Command) -> Vec<String> {
    let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let ours = names.filter(|name| name.starts_with(PREFIX)).collect::<Vec<_>>();
    if ours.is_empty() {
        return Vec::new();
    }
    let mut known = variables(own);
    let unknown: Vec<&String> = ours.iter().filter(|name| !known.contains(*name)).collect();
    if unknown.is_empty() {
        return Vec::new();
    }
    known.extend(variables(&all()));
    let unknown = unknown.into_iter().filter(|name| !known.contains(*name));
    unknown.filter_map(|name| hint(name, &known)).collect()
}

/// The variables of a command and its subcommands.
fn variables(command: &Command) -> BTreeSet<String> {
    let own = command.get_arguments().filter_map(|arg| arg.get_env());
    let own = own.map(|name| name.to_string_lossy().into_owned());
    own.chain(command.get_subcommands().flat_map(variables)).collect()
}

/// The name that was probably meant. Others of this prefix may be of programs that use this one.
fn hint(name: &str, known: &BTreeSet<String>) -> Option<String> {
    let distance = |other: &&String| strsim::damerau_levenshtein(name, other);
    let nearest = known.iter().min_by_key(distance)?;
    let letters = name.len() - PREFIX.len();
    let is_near = distance(&nearest) <= letters / LETTERS_A_FAULT;
    is_near.then(|| {
        format!("{name} is set in the environment, which no option reads: did you mean {nearest}?")
    })
}

const PREFIX: &str = "WIREPROOF_";

/// Letters of a name per letter that is missing, added, changed or swapped.
const LETTERS_A_FAULT: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_almost_that_of_an_option_is_told_and_no_other() {
        let known = ["WIREPROOF_COLLECTIONS", "WIREPROOF_HOST"].map(str::to_owned).into();
        for name in ["WIREPROOF_COLECTIONS", "WIREPROOF_COLLECTION", "WIREPROOF_COLLETCIONS"] {
            assert!(hint(name, &known).unwrap().ends_with("WIREPROOF_COLLECTIONS?"), "{name}");
        }
        assert!(hint("WIREPROOF_HSOT", &known).is_some());
        for name in ["WIREPROOF_FIXTURES", "WIREPROOF_ADMIN_TOKEN", "WIREPROOF_OUT"] {
            assert_eq!(hint(name, &known), None, "{name}");
        }
    }
}
