//! The peers: their versions, registries and sources, and the calls that the hostile set was tried on.

use results::Results;

use crate::html::{Html, Tag, body, cell, framed, head, heading, row, row_heading, tag};

/// A table of every peer of the run.
pub(super) fn of(results: &Results) -> Tag {
    let mut peers: Vec<&results::Row> = Vec::new();
    for row in &results.rows {
        if !peers.iter().any(|known| known.peer == row.peer) {
            peers.push(row);
        }
    }
    peers.sort_by_key(|row| (row.peer != results::PEER, &row.peer));
    let lines = peers.into_iter().map(|peer| line(results, peer));
    let headings = ["peer", "language", "version", "tasks", "links"].map(heading);
    let table = framed(
        "Every measured implementation",
        "plain",
        Html::from(head(headings)).and(body(lines)),
    );
    tag("section")
        .attr("id", "peers")
        .attr("aria-labelledby", "peers-title")
        .with(tag("h2").attr("id", "peers-title").text("Peers"))
        .with(table)
}

fn line(results: &Results, peer: &results::Row) -> Tag {
    let mut tasks: Vec<&str> = Vec::new();
    for task in results.rows.iter().filter(|row| row.peer == peer.peer).map(|row| row.task.as_str())
    {
        if tasks.last() != Some(&task) {
            tasks.push(task);
        }
    }
    let links = links(&peer.peer, &peer.version).into_iter().enumerate().map(|(at, (name, to))| {
        let comma = (at > 0).then(|| Html::text(", "));
        Html::from(comma).and(tag("a").attr("href", to).text(name))
    });
    row()
        .with(row_heading().class("peer").text(&peer.peer))
        .with(cell().text(&peer.language))
        .with(cell().class("version").text(&peer.version))
        .with(cell().text(tasks.join(", ")))
        .with(cell().with_all(links))
}

/// Where a version of a peer is published, and its source.
fn links(peer: &str, version: &str) -> Vec<(&'static str, String)> {
    let Some((_, registry, name, source)) = PEERS.iter().find(|(known, ..)| *known == peer) else {
        return Vec::new();
    };
    // Some versions are named with their library: `minicbor 2.3.1`.
    let version = version.rsplit(' ').next().unwrap_or_default();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || ".-+".contains(letter);
    let version = if version.chars().all(is_plain) { version } else { "" };
    let page = match *registry {
        "crates.io" => format!("https://crates.io/crates/{name}/{version}"),
        "pkg.go.dev" => format!("https://pkg.go.dev/{name}@{version}"),
        "PyPI" => format!("https://pypi.org/project/{name}/{version}/"),
        "npm" => format!("https://www.npmjs.com/package/{name}/v/{version}"),
        _ => String::new(),
    };
    let page = (!page.is_empty() && !version.is_empty()).then_some((*registry, page));
    let source = (!source.is_empty()).then(|| ("source", format!("https://{source}")));
    page.into_iter().chain(source).collect()
}

/// The call that the hostile set was tried on.
pub(super) fn call(peer: &str, path: &str) -> &'static str {
    let known = CALLS.iter().find(|(of, kind, _)| *of == peer && *kind == path);
    known.map_or("see bench/BIAS.md", |(.., call)| call)
}

/// A peer, the registry and name of the library whose version it states, and its repository.
type Known = (&'static str, &'static str, &'static str, &'static str);

const PEERS: [Known; 27] = [
    ("wireproof", "", "", "github.com/wireproof/wireproof"),
    ("go-atmos", "pkg.go.dev", "github.com/jcalabro/atmos", "github.com/jcalabro/atmos"),
    (
        "go-indigo",
        "pkg.go.dev",
        "github.com/bluesky-social/indigo",
        "github.com/bluesky-social/indigo",
    ),
    ("go-raw", "pkg.go.dev", "github.com/fxamacker/cbor/v2", "github.com/fxamacker/cbor"),
    ("python-atproto", "PyPI", "atproto", "github.com/MarshalX/atproto"),
    ("python-wireproof", "", "", "github.com/wireproof/wireproof"),
    ("rust-buffa", "crates.io", "buffa", "github.com/anthropics/buffa"),
    ("rust-ciborium", "crates.io", "ciborium", "github.com/enarx/ciborium"),
    ("rust-jacquard", "crates.io", "jacquard-repo", "tangled.org/nonbinary.computer/jacquard"),
    (
        "rust-libsecp256k1",
        "crates.io",
        "secp256k1",
        "git.rust-bitcoin.org/rust-bitcoin/rust-secp256k1",
    ),
    ("rust-minicbor", "crates.io", "minicbor", "github.com/twittner/minicbor"),
    ("rust-nostr", "crates.io", "nostr", "github.com/nostrdevkit/nostr"),
    ("rust-notepack", "crates.io", "notepack", "github.com/jb55/notepack"),
    ("rust-prost", "crates.io", "prost", "github.com/tokio-rs/prost"),
    ("rust-raw", "crates.io", "minicbor", "github.com/twittner/minicbor"),
    ("rust-repo-stream", "crates.io", "repo-stream", "tangled.org/@microcosm.blue/repo-stream"),
    ("rust-rmp-serde", "crates.io", "rmp-serde", "github.com/3Hren/msgpack-rust"),
    ("rust-rsky", "crates.io", "serde_ipld_dagcbor", "github.com/blacksky-algorithms/rsky"),
    ("rust-serde-json", "crates.io", "serde_json", "github.com/serde-rs/json"),
    ("rust-shrike", "crates.io", "shrike", "github.com/jcalabro/shrike"),
    ("rust-sonic-rs", "crates.io", "sonic-rs", "github.com/cloudwego/sonic-rs"),
    ("ts-atcute", "npm", "@atcute/cbor", "github.com/mary-ext/atcute"),
    ("ts-atproto", "npm", "@atproto/crypto", "github.com/bluesky-social/atproto"),
    ("ts-noble", "npm", "@noble/curves", "github.com/paulmillr/noble-curves"),
    ("ts-nostr-tools", "npm", "nostr-tools", "github.com/nbd-wtf/nostr-tools"),
    ("ts-wireproof", "", "", "github.com/wireproof/wireproof"),
    ("zig-zat", "", "", "tangled.org/zzstoatzz.io/zat"),
];

/// From `bench/BIAS.md`, “Hostile input”.
const CALLS: [(&str, &str, &str); 23] = [
    ("wireproof", "repo", "verify::repo::verify"),
    ("wireproof", "frames", "verify::sync::Judge::judge"),
    ("wireproof", "nostr", "nostr::Verifier"),
    ("go-atmos", "repo", "LoadCompleteFromCAR, then DID and signature"),
    ("go-atmos", "frames", "Verifier.VerifyCommit, strict options"),
    ("go-indigo", "repo", "Tap’s backfill: repo.LoadRepoFromCAR"),
    ("go-indigo", "frames", "Tap’s consumer: repo.VerifyCommitMessage"),
    ("python-wireproof", "repo", "wireproof.verify_repo"),
    ("python-wireproof", "frames", "wireproof.Judge.batch"),
    ("rust-jacquard", "repo", "parse_car_bytes, Commit::verify, leaves"),
    ("rust-jacquard", "frames", "validate_v1_1"),
    ("rust-repo-stream", "repo", "the strict walk"),
    ("rust-rsky", "repo", "verify_repo"),
    ("rust-shrike", "repo", "Repo::load_car, then DID and signature"),
    ("rust-shrike", "frames", "Verifier, default options"),
    ("ts-atcute", "repo", "fromUint8Array, verifyRecord of each"),
    ("ts-atproto", "repo", "verifyRepoCar"),
    ("ts-atproto", "frames", "Firehose.parseEvt"),
    ("ts-wireproof", "repo", "verifyRepository"),
    ("ts-wireproof", "frames", "Judge.judgeMany"),
    ("rust-nostr", "nostr", "Event::from_json, verify"),
    ("rust-libsecp256k1", "nostr", "verify_schnorr"),
    ("ts-nostr-tools", "nostr", "verifyEvent"),
];

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_runner_has_links_in_the_table() {
        let runners = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/runners");
        for entry in fs::read_dir(runners).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            if entry.file_type().unwrap().is_dir() && !name.ends_with("-shell") {
                assert!(!links(&name, "1.0.0").is_empty(), "{name}");
            }
        }
    }

    #[test]
    fn a_link_has_the_version_that_the_peer_states_and_nothing_else_of_its_text() {
        let page = |peer: &str, version: &str| links(peer, version)[0].1.clone();
        assert_eq!(page("rust-raw", "minicbor 2.3.1"), "https://crates.io/crates/minicbor/2.3.1");
        assert_eq!(
            page("go-raw", "v2.9.6"),
            "https://pkg.go.dev/github.com/fxamacker/cbor/v2@v2.9.6"
        );
        assert_eq!(page("rust-raw", "1?x=\"<"), "https://github.com/twittner/minicbor");
        assert!(links("juggle", "1").is_empty());
    }
}
