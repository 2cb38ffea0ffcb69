//! How many packages a program is made of: a newcomer waits for them.

use std::collections::BTreeSet;

use crate::process;

/// Programs, and the largest number of packages that they may be made of on this system.
const MAX_PACKAGES: [(&str, usize); 4] = [
    ("wireproof-demo", 160),
    ("wireproof-cli", 266),
    ("wireproof-archive-cli", 285),
    ("wireproof-bench-cli", 230),
];

/// The packages of a program, including the packages of its build scripts and macros.
fn packages(program: &str) -> BTreeSet<String> {
    let args = ["tree", "--locked", "--edges", "normal,build", "--prefix", "none", "-p", program];
    let tree = process::command("cargo", &args).output().unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let tree = String::from_utf8(tree.stdout).unwrap();
    // Name and version: the rest says that a package was named before, or where it is.
    let named = |line: &str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    tree.lines().filter(|line| !line.is_empty()).map(named).collect()
}

#[test]
fn no_program_has_more_packages_than_it_may() {
    for (program, max) in MAX_PACKAGES {
        let packages = packages(program);
        assert!(packages.iter().any(|package| package.starts_with("wireproof-base ")));
        let count = packages.len();
        assert!(
            count <= max,
            "{program} has {count} packages, and may have {max}: {packages:#?}; leave one out, make it a feature, or say in \
             docs/decisions/programs.md what it is worth"
        );
    }
}
