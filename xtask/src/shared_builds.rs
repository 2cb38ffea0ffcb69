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
