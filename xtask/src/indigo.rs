//! Where are the fixtures of the indigo Go module? They are part of a pinned release that the Go
//! module proxy serves, so a fresh clone can test itself on real data.

use std::path::PathBuf;

use serde_json::Value;

use crate::process;

/// Fetches the module and answers its folder.
pub(crate) fn fetch() -> Result<PathBuf, String> {
    let cache = process::target("gomod");
    std::fs::create_dir_all(&cache).map_err(|error| format!("{}: {error}", cache.display()))?;
    let mut command = process::command("go", &["mod", "download", "-json", MODULE]);
    // Outside any module, so that only the one that is asked for is looked at; writable, so that
    // `cargo clean` can remove it.
    command.current_dir(&cache).env("GOMODCACHE", &cache).env("GOFLAGS", "-modcacherw");
    let answer: Value = serde_json::from_str(&process::output(&mut command)?)
        .map_err(|error| format!("go mod download: {error}"))?;
    match (answer["Dir"].as_str(), answer["Error"].as_str()) {
        (Some(dir), None) => Ok(dir.into()),
        (_, error) => Err(format!("go mod download {MODULE}: {}", error.unwrap_or("no folder"))),
    }
}

const MODULE: &str = "github.com/bluesky-social/indigo@v0.0.0-20260605210604-af2fec94f34c";
