//! The build with every feature uses the libraries of the default build again, if they have the same features. One library with other
//! features, even one that only derives use, builds hundreds of others a second time.

use std::collections::{BTreeMap, BTreeSet};

use crate::process::{self, Selection};

/// Libraries that both builds have with other features, each with few dependents in the default build. Our own differ by their features.
const BUILT_TWICE: [&str; 6] = ["arrow-ipc", "der", "object_store", "parquet", "spki", "twox-hash"];

/// The sets of features of every library in the tests of a selection, by name and version.
fn features(selection: Selection) -> BTreeMap<String, BTreeSet<String>> {
    let format = ["--edges", "normal,build,dev", "--prefix", "none", "--format", "{p}|{f}"];
    let args = [&["tree", "--locked"][..], selection.arguments(), &format].concat();
    let tree = process::command("cargo", &args).output().unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let mut features = BTreeMap::<String, BTreeSet<String>>::new();
    for line in String::from_utf8(tree.stdout).unwrap().lines() {
        let Some((package, set)) = line.trim_end_matches(" (*)").split_once('|') else { continue };
        // The rest says where the package is.
        let package = package.split(' ').take(2).collect::<Vec<_>>().join(" ");
        features.entry(package).or_default().insert(set.to_owned());
    }
    features
}

#[test]
fn both_builds_have_libraries_with_the_same_features() {
    let (default, all) = (features(Selection::Default), features(Selection::All));
    assert!(default.keys().any(|package| package.starts_with("syn ")), "derives are listed");
    let differs = |package: &String, sets: &BTreeSet<String>| {
        let (name, _) = package.split_once(' ').unwrap();
        let is_known = name.starts_with("wireproof-") || BUILT_TWICE.contains(&name);
        !is_known && all.get(package).is_some_and(|all| !sets.is_subset(all))
    };
    let twice: Vec<_> = default.iter().filter(|(package, sets)| differs(package, sets)).collect();
    assert!(
        twice.is_empty(),
        "built twice: {twice:#?}; give `conformance/Cargo.toml` the features that they have with every feature: {:#?}",
        twice.iter().map(|(package, _)| &all[*package]).collect::<Vec<_>>()
    );
}

/// The versions of every package of a lock file, by name.
fn versions(lock: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut versions = BTreeMap::<&str, BTreeSet<&str>>::new();
    for package in lock.split("[[package]]").skip(1) {
        let value = |key: &str| package.lines().find_map(|line| line.strip_prefix(key));
        let [name, version] = ["name = ", "version = "].map(|key| value(key).unwrap_or_default());
        versions.entry(name).or_default().insert(version);
    }
    versions
}

#[test]
fn the_programs_of_the_examples_have_the_libraries_of_the_workspace() {
    let of_workspace = versions(include_str!("../../Cargo.lock"));
    let of_examples = versions(include_str!("../../conformance/outside/Cargo.lock"));
    assert!(of_examples.len() > 100);
    let differs = |(name, versions): &(&&str, &BTreeSet<&str>)| {
        of_workspace.get(**name).is_some_and(|all| !versions.is_subset(all))
    };
    let differing: Vec<_> = of_examples.iter().filter(differs).collect();
    assert!(
        differing.is_empty(),
        "built twice: {differing:?}; `cargo update --precise` in conformance/outside"
    );
}
