//! What has the command kept?

use std::path::{Path, PathBuf};

use simnet::servers::{Server, Simulation};
use wireproof::store::{Options, Store};

/// The cursor that is kept of a relay; nobody else may use the state now.
pub(crate) fn cursor(state: &Path, sim: &Simulation, relay: Server) -> Option<i64> {
    let store = Store::open(&file(state), Options::default()).expect("a state that can be read");
    let cursors = store.cursors().expect("cursors that can be read");
    let port = format!(":{}/", sim.port(relay));
    let found = cursors.iter().find(|(stream, _)| stream.contains(&port));
    found.map(|(_, cursor)| i64::try_from(*cursor).expect("a number of a relay"))
}

/// The one database in the folder.
fn file(state: &Path) -> PathBuf {
    let files = state.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let is_database = |path: &PathBuf| path.extension().is_some_and(|name| name == "sqlite");
    { files }.find(is_database).expect("a state file")
}
