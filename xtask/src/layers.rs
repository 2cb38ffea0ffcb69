//! The layer table of `ARCHITECTURE.md`: every dependency between our crates points down.
//!
//! Dependencies of tests count too: a test that needs a higher layer belongs in `conformance/`.

use serde_json::Value;

use crate::process;

/// Checks the workspace against the table.
pub(crate) fn check_workspace() -> Result<(), String> {
    let edges = edges(&process::metadata()?)?;
    let faults = faults(&edges);
    if faults.is_empty() {
        println!(
            "{} crates, {} dependencies between them, all point down",
            edges.len(),
            count(&edges)
        );
        return Ok(());
    }
    Err(faults.join("\n"))
}

/// A package of the workspace, and the packages of the workspace that it uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edges {
    pub(crate) from: String,
    pub(crate) to: Vec<String>,
}

fn count(edges: &[Edges]) -> usize {
    edges.iter().map(|edges| edges.to.len()).sum()
}

/// The dependencies between the packages of the workspace.
pub(crate) fn edges(metadata: &Value) -> Result<Vec<Edges>, String> {
    let packages = metadata["packages"].as_array().ok_or("cargo metadata without packages")?;
    let ours: Vec<String> = packages.iter().map(name).collect();
    let used = |package: &Value| {
        let listed = package["dependencies"].as_array().into_iter().flatten();
        let own = name(package);
        // A crate that enables features of itself for its tests is no edge.
        let is_edge = |name: &String| ours.contains(name) && *name != own;
        let mut to: Vec<String> = listed.map(name).filter(is_edge).collect();
        to.sort();
        to.dedup();
        to
    };
    Ok(packages.iter().map(|package| Edges { from: name(package), to: used(package) }).collect())
}

/// The name that the table uses for a package in Cargo's metadata.
pub(crate) fn name(package: &Value) -> String {
    short(package["name"].as_str().unwrap_or_default()).to_owned()
}

/// The name that the table uses.
pub(crate) fn short(name: &str) -> &str {
    name.strip_prefix("wireproof-").unwrap_or(name)
}

/// One line per package or dependency that the table does not allow.
fn faults(edges: &[Edges]) -> Vec<String> {
    let mut faults = Vec::new();
    for Edges { from, to } in edges {
        match entry(from) {
            None => faults.push(format!("`{from}` is in no layer: give it one in {}", file!())),
            Some(crate_) => {
                let forbidden = to.iter().filter(|name| !crate_.may_use(name));
                faults.extend(forbidden.map(|name| {
                    format!("`{from}` (layer {}) must not use {}", crate_.layer, described(name))
                }));
            }
        }
    }
    faults
}

fn described(name: &str) -> String {
    match entry(name) {
        Some(crate_) => format!("`{name}` (layer {})", crate_.layer),
        None => format!("`{name}` (no layer)"),
    }
}

fn entry(name: &str) -> Option<&'static Crate> {
    TABLE.iter().find(|crate_| crate_.name == name)
}

/// A row of the table.
struct Crate {
    name: &'static str,
    layer: u8,
    uses: Uses,
}

/// Which of our crates a crate may use.
enum Uses {
    /// These.
    Only(&'static [&'static str]),
    /// Every crate of a lower layer.
    AllBelow,
}

impl Crate {
    fn may_use(&self, name: &str) -> bool {
        let is_below = entry(name).is_some_and(|used| used.layer < self.layer);
        is_below
            && match self.uses {
                Uses::Only(allowed) => allowed.contains(&name),
                Uses::AllBelow => true,
            }
    }
}

const fn row(layer: u8, name: &'static str, uses: Uses) -> Crate {
    Crate { name, layer, uses }
}

const TABLE: [Crate; 46] = [
    row(1, "base", Uses::Only(&[])),
    row(1, "kernels", Uses::Only(&[])),
    row(2, "codec", Uses::Only(&["kernels"])),
    row(2, "crypto", Uses::Only(&["kernels"])),
    row(3, "atproto", Uses::Only(&["codec", "kernels"])),
    row(3, "nostr", Uses::Only(&["kernels", "crypto"])),
    row(4, "nostr-formats", Uses::Only(&["kernels", "nostr"])),
    row(4, "events", Uses::Only(&["atproto", "codec"])),
    row(4, "verify", Uses::Only(&["atproto", "codec", "crypto", "kernels"])),
    row(5, "store", Uses::Only(&["base", "verify", "atproto", "codec", "kernels"])),
    row(5, "net", Uses::Only(&["base", "verify", "atproto", "codec", "crypto", "kernels"])),
    row(5, "simnet", Uses::AllBelow),
    row(5, "allocator", Uses::Only(&[])),
    row(5, "mapping", Uses::Only(&[])),
    row(
        6,
        "directory",
        Uses::Only(&[
            "atproto", "base", "codec", "crypto", "kernels", "net", "simnet", "store", "verify",
        ]),
    ),
    row(6, "delivery", Uses::Only(&["atproto", "base", "events", "net", "store", "kernels"])),
    row(
        6,
        "archive",
        Uses::Only(&[
            "base", "verify", "atproto", "codec", "crypto", "kernels", "mapping", "net", "simnet",
        ]),
    ),
    row(6, "host-judge", Uses::Only(&["atproto", "codec", "crypto", "net", "simnet", "verify"])),
    row(6, "nostr-relay", Uses::Only(&["base", "crypto", "kernels", "net", "nostr"])),
    row(6, "nostr-lmdb", Uses::Only(&["nostr", "nostr-formats", "kernels", "mapping"])),
    row(
        7,
        "nostr-files",
        Uses::Only(&["codec", "kernels", "nostr", "nostr-formats", "nostr-lmdb", "simnet"]),
    ),
    row(7, "query", Uses::Only(&["archive", "atproto", "codec", "crypto", "simnet", "verify"])),
    row(7, "bench-protocol", Uses::Only(&[])),
    row(8, "bench-results", Uses::Only(&["bench-protocol", "simnet"])),
    row(
        9,
        "bench",
        Uses::Only(&[
            "atproto",
            "bench-protocol",
            "bench-results",
            "codec",
            "crypto",
            "kernels",
            "nostr",
            "nostr-formats",
            "simnet",
            "verify",
        ]),
    ),
    row(10, "report", Uses::Only(&["bench-results", "kernels"])),
    row(
        10,
        "demo",
        Uses::Only(&["allocator", "atproto", "bench", "codec", "net", "simnet", "store", "verify"]),
    ),
    row(
        10,
        "program",
        Uses::Only(&[
            "archive", "atproto", "base", "codec", "crypto", "delivery", "kernels", "mapping",
            "net", "store", "verify",
        ]),
    ),
    row(
        11,
        "follower",
        Uses::Only(&[
            "allocator",
            "atproto",
            "base",
            "codec",
            "crypto",
            "delivery",
            "events",
            "kernels",
            "mapping",
            "net",
            "program",
            "simnet",
            "store",
            "verify",
        ]),
    ),
    row(
        11,
        "backfill",
        Uses::Only(&[
            "archive", "atproto", "base", "codec", "crypto", "kernels", "mapping", "net",
            "program", "simnet", "verify",
        ]),
    ),
    row(
        12,
        "jetstream-archive",
        Uses::Only(&[
            "archive", "atproto", "backfill", "codec", "crypto", "kernels", "mapping", "net",
            "program", "simnet", "verify",
        ]),
    ),
    row(
        12,
        "label-follower",
        Uses::Only(&[
            "atproto", "base", "codec", "crypto", "delivery", "events", "follower", "kernels",
            "net", "program", "simnet", "store", "verify",
        ]),
    ),
    row(
        12,
        "nostr-follower",
        Uses::Only(&[
            "codec",
            "delivery",
            "events",
            "follower",
            "kernels",
            "net",
            "nostr",
            "nostr-formats",
            "nostr-relay",
            "program",
            "simnet",
            "store",
            "verify",
        ]),
    ),
    row(
        12,
        "serve",
        Uses::Only(&[
            "archive",
            "atproto",
            "base",
            "codec",
            "conformance",
            "crypto",
            "delivery",
            "events",
            "follower",
            "kernels",
            "net",
            "program",
            "simnet",
            "verify",
        ]),
    ),
    row(13, "archive-cli", Uses::AllBelow),
    row(13, "bench-cli", Uses::AllBelow),
    row(13, "cli", Uses::AllBelow),
    row(14, "js", Uses::AllBelow),
    row(14, "python", Uses::AllBelow),
    // For programs of others: none of ours uses it.
    row(14, "wireproof", Uses::AllBelow),
    // It reads and writes the states of the npm package.
    row(15, "page", Uses::AllBelow),
    // Outside the layers: tests may use all but the command, `mutants` and `xtask` nothing.
    row(10, "conformance", Uses::AllBelow),
    row(10, "fuzz", Uses::AllBelow),
    row(13, "interop", Uses::AllBelow),
    row(9, "mutants", Uses::Only(&[])),
    row(9, "xtask", Uses::Only(&[])),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn faults_of(from: &str, to: &[&str]) -> Vec<String> {
        let to = to.iter().map(|name| (*name).to_owned()).collect();
        faults(&[Edges { from: from.to_owned(), to }])
    }

    #[test]
    fn an_edge_that_points_down_is_allowed() {
        assert_eq!(faults_of("codec", &["kernels"]), [""; 0]);
        assert_eq!(faults_of("nostr", &["kernels", "crypto"]), [""; 0]);
        assert_eq!(faults_of("cli", &["net", "simnet", "bench"]), [""; 0]);
        assert_eq!(faults_of("conformance", &["kernels", "bench", "net"]), [""; 0]);
    }

    #[test]
    fn an_edge_that_points_up_is_a_fault() {
        assert_eq!(
            faults_of("kernels", &["codec"]),
            ["`kernels` (layer 1) must not use `codec` (layer 2)"]
        );
        assert_eq!(faults_of("atproto", &["verify", "codec"]).len(), 1);
        assert_eq!(faults_of("bench", &["cli"]).len(), 1);
        assert_eq!(faults_of("conformance", &["cli"]).len(), 1);
        assert_eq!(faults_of("cli", &["wireproof"]).len(), 1);
        assert_eq!(faults_of("python", &["wireproof"]).len(), 1);
    }

    #[test]
    fn an_edge_within_a_layer_is_a_fault() {
        assert_eq!(faults_of("codec", &["crypto"]).len(), 1);
        assert_eq!(faults_of("net", &["store"]).len(), 1);
        assert_eq!(faults_of("simnet", &["net"]).len(), 1);
    }

    #[test]
    fn an_edge_down_that_the_table_does_not_list_is_a_fault() {
        assert_eq!(faults_of("nostr", &["codec"]).len(), 1);
        assert_eq!(faults_of("report", &["codec"]).len(), 1);
        assert_eq!(faults_of("xtask", &["kernels"]).len(), 1);
    }

    #[test]
    fn a_package_without_a_layer_is_a_fault_even_alone() {
        assert!(faults_of("helpers", &[])[0].contains("give it one"));
        assert_eq!(
            faults_of("cli", &["helpers"]),
            ["`cli` (layer 13) must not use `helpers` (no layer)"]
        );
    }

    #[test]
    fn the_table_itself_points_down() {
        for crate_ in &TABLE {
            if let Uses::Only(allowed) = crate_.uses {
                for name in allowed {
                    assert!(crate_.may_use(name), "{} may use {name}", crate_.name);
                }
            }
        }
    }

    #[test]
    fn metadata_gives_the_edges_between_our_own_packages_once() {
        let metadata = serde_json::json!({"packages": [
            {"name": "wireproof-codec", "dependencies": [
                {"name": "wireproof-kernels", "kind": null},
                {"name": "wireproof-kernels", "kind": "dev"},
                {"name": "wireproof-codec", "kind": "dev"},
                {"name": "serde", "kind": null},
            ]},
            {"name": "wireproof-kernels", "dependencies": []},
        ]});
        let codec = Edges { from: "codec".to_owned(), to: vec!["kernels".to_owned()] };
        let kernels = Edges { from: "kernels".to_owned(), to: Vec::new() };
        assert_eq!(edges(&metadata), Ok(vec![codec, kernels]));
    }
}
