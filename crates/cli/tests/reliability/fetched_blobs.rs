//! Blobs are fetched as fast as a host allows and not faster, in bounded memory, and are stored once through kills at any moment.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;
use simnet::blob_account::{BlobAccount, Spec as BlobSpec};
use simnet::servers::{RequestLimit, Server, Simulation, Spec};

#[cfg(target_os = "linux")]
use crate::follow::memory_of;
use crate::{report, scaled};

/// A host with accounts that have blobs, and an archive.
struct Scene {
    sim: Simulation,
    folder: tempfile::TempDir,
    dids: Vec<String>,
    /// The names of all blobs, each once.
    names: BTreeSet<String>,
    /// The number of blobs, once for each account.
    count: u64,
}

impl Scene {
    fn new(spec: Spec, accounts: &[BlobSpec]) -> Self {
        let spec = Spec { accounts: 1, records: 1, pds: 1, jetstreams: 0, ..spec };
        let sim = Simulation::start(spec).unwrap();
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("tmp")).unwrap();
        let (mut dids, mut names, mut count) = (Vec::new(), BTreeSet::new(), 0);
        for account in accounts {
            let account = BlobAccount::generate(account);
            dids.push(account.did().to_owned());
            names.extend(account.cids().map(|cid| cid.to_string()));
            count += account.cids().count() as u64;
            sim.serve_blob_account(0, account);
        }
        Self { sim, folder, dids, names, count }
    }

    fn archive(&self) -> PathBuf {
        self.folder.path().join("archive")
    }

    fn temporary(&self) -> PathBuf {
        self.folder.path().join("tmp")
    }

    /// `blobs fetch` of all accounts into an archive, with these arguments.
    fn fetch_into(&self, archive: &str, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
        command.args(["blobs", "fetch", archive, "--development", "--json"]);
        command.args(["--plc", &self.sim.url(Server::Plc)]).args(args).args(&self.dids);
        command.env("XDG_CONFIG_HOME", "/nonexistent").env("TMPDIR", self.temporary());
        command
    }

    fn fetch(&self, args: &[&str]) -> Command {
        self.fetch_into(self.archive().to_str().unwrap(), args)
    }

    /// A command about the archive.
    fn about(&self, names: [&str; 2]) -> Value {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
        command.args(names).arg(self.archive()).arg("--json");
        document(command.env("XDG_CONFIG_HOME", "/nonexistent").output().unwrap())
    }

    /// The stored blobs.
    fn stored(&self) -> BTreeSet<String> {
        let files = files(&self.archive().join("blob_files"));
        files.iter().map(|file| file.file_name().unwrap().to_str().unwrap().to_owned()).collect()
    }

    /// The temporary files of fetches.
    fn leftovers(&self) -> Vec<PathBuf> {
        let folders = [self.archive().join("staging"), self.temporary()];
        folders.iter().flat_map(|folder| files(folder)).collect()
    }

    /// Waits until a fetch begins to write a blob, or ends.
    fn wait_for_temporary_file(&self, fetch: &mut Child) {
        let before = self.leftovers().len();
        while self.leftovers().len() <= before && fetch.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
    }

    /// Asserts that every blob is stored, once for every account that names it.
    fn assert_whole(&self) {
        assert!(self.stored() == self.names, "every blob, and nothing else");
        let checked = self.about(["blobs", "verify"]);
        assert_eq!(
            (&checked["present_count"], &checked["blob_count"]),
            (&self.count.into(), &self.count.into())
        );
        let verified = self.about(["archive", "verify"]);
        assert_eq!(verified["proved_blob_count"], self.count, "a row for every account and blob");
        let announced = files(&self.archive().join("uploads/blobs"));
        assert_eq!(announced, Vec::<PathBuf>::new(), "every announced blob has its row");
    }
}

/// The document of a command that succeeded.
fn document(output: Output) -> Value {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

#[test]
fn kills_at_any_moment_leave_every_blob_stored_once_and_no_temporary_file() {
    let accounts = scaled(3, 8);
    let spec = |account| BlobSpec {
        account,
        blobs: scaled(40, 400),
        blob_len: 200_000,
        shared: 5,
        ..BlobSpec::default()
    };
    let accounts: Vec<BlobSpec> = (0..accounts).map(spec).collect();
    let scene = Scene::new(Spec::default(), &accounts);
    let (rounds, mut kills, mut left) = (scaled(12, 300), 0, 0);
    for round in 0..rounds {
        let mut fetch = scene.fetch(&["--max-rate", "50"]);
        let mut child = fetch.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // Multiples of an odd number visit all remainders, in no order.
        std::thread::sleep(Duration::from_millis(20 + round * 7_919 % 1_511));
        if round % 2 == 1 {
            scene.wait_for_temporary_file(&mut child);
        }
        kills += u64::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
        left += scene.leftovers().len();
        if scene.stored().len() == scene.names.len() {
            // The next kills are in a new fetch.
            fs::remove_dir_all(scene.archive()).unwrap();
        }
    }
    document(scene.fetch(&["--max-rate", "50"]).output().unwrap());
    scene.assert_whole();

    // Leftovers of a killed process are deleted a minute later.
    let before = scene.leftovers();
    for path in &before {
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(120)).unwrap();
    }
    let again = document(scene.fetch(&[]).output().unwrap());
    assert_eq!(
        (&again["fetched_count"], &again["present_count"]),
        (&0.into(), &scene.count.into())
    );
    assert_eq!(scene.leftovers(), Vec::<PathBuf>::new());
    report(&format!("{kills} kills of {rounds} fetches left {left} temporary files"));
    assert!(kills > rounds / 2 && left > 0, "{kills} kills, {left} leftovers");
}

#[test]
fn a_fetch_sends_all_requests_that_an_announced_limit_allows_and_none_beyond_it() {
    let limit =
        RequestLimit { requests: scaled(40, 300), window: Duration::from_secs(scaled(3, 20)) };
    let spec = Spec { request_limit: Some(limit), announces_limit: true, ..Spec::default() };
    let blobs = u64::from(limit.requests) * scaled(3, 10) + 20;
    let account = BlobSpec { blobs, ..BlobSpec::default() };
    let scene = Scene::new(spec, &[account]);
    let started = Instant::now();
    let fetched = document(scene.fetch(&["--max-rate", "50"]).output().unwrap());
    let elapsed = started.elapsed();
    assert_eq!(fetched["fetched_count"], blobs);
    let windows = scene.sim.request_windows(Server::Pds(0));
    let (_, whole) = windows.split_last().unwrap();
    let rejected: u32 = windows.iter().map(|window| window.rejected).sum();
    assert_eq!(rejected, 0, "{windows:?}");
    assert!(whole.len() as u64 >= scaled(3, 10), "{windows:?}");
    // In the first one, the rate grows from eight requests a second.
    for window in &whole[1..] {
        assert!(window.answered * 10 >= limit.requests * 9, "{windows:?}");
    }
    let least = whole.len() as f64 * limit.window.as_secs_f64();
    report(&format!(
        "{blobs} blobs of a host that announces {} requests in {} s: {:.1} s, of which its limit asks for {least} s",
        limit.requests,
        limit.window.as_secs(),
        elapsed.as_secs_f64()
    ));
}

#[test]
fn a_fetch_sends_all_requests_that_a_limit_allows_that_only_rejections_state() {
    let limit =
        RequestLimit { requests: scaled(40, 300), window: Duration::from_secs(scaled(3, 20)) };
    let spec = Spec { request_limit: Some(limit), ..Spec::default() };
    let blobs = u64::from(limit.requests) * scaled(3, 10) + 20;
    let account = BlobSpec { blobs, ..BlobSpec::default() };
    let scene = Scene::new(spec, &[account]);
    let fetched = document(scene.fetch(&["--max-rate", "50"]).output().unwrap());
    assert_eq!(fetched["fetched_count"], blobs);
    let windows = scene.sim.request_windows(Server::Pds(0));
    let (_, whole) = windows.split_last().unwrap();
    assert!(whole.len() as u64 >= scaled(3, 10), "{windows:?}");
    // In the first one, the rate grows from eight requests a second.
    for window in &whole[1..] {
        assert_eq!(window.answered, limit.requests, "{windows:?}");
        // The requests that are under way when the first one is rejected.
        assert!((1..=4).contains(&window.rejected), "{windows:?}");
    }
    report(&format!("{blobs} blobs of a host that states its limit in rejections: {windows:?}"));
}

#[test]
#[cfg(target_os = "linux")]
fn large_blobs_and_accounts_with_many_are_fetched_in_bounded_memory() {
    let large = BlobSpec { blobs: scaled(24, 64), blob_len: 16 << 20, ..BlobSpec::default() };
    let many = BlobSpec { account: 1, blobs: scaled(600, 20_000), ..BlobSpec::default() };
    for (name, account) in [("large", large), ("many", many)] {
        let scene = Scene::new(Spec::default(), &[account]);
        let started = Instant::now();
        let (peak, fetched) = peak(scene.fetch(&["--max-rate", "50"]));
        let seconds = started.elapsed().as_secs_f64();
        assert_eq!(fetched["fetched_count"], account.blobs);
        let bytes = account.blobs as f64 * account.blob_len as f64;
        report(&format!(
            "{name}: {} blobs of {} bytes, {:.1} blobs/s, {:.1} MB/s: at most {} MiB of memory",
            account.blobs,
            account.blob_len,
            account.blobs as f64 / seconds,
            bytes / seconds / 1e6,
            peak >> 20
        ));
        assert!(peak <= MAX_BYTES, "{name}: {peak} bytes of memory");
        let (peak, fetched) = self::peak(scene.fetch(&["--hash"]));
        assert_eq!(fetched["present_count"], account.blobs);
        report(&format!("{name}, hashed again: at most {} MiB of memory", peak >> 20));
        assert!(peak <= MAX_BYTES, "{name}, hashed again: {peak} bytes of memory");
    }
}

/// The peak of memory of a command in bytes, and its document. In a test build without the pages of the program: their number
/// depends on the libraries' optimisation.
#[cfg(target_os = "linux")]
fn peak(mut command: Command) -> (u64, Value) {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut peak, pid) = (0, child.id());
    let ended = std::thread::spawn(move || child.wait_with_output().unwrap());
    while !ended.is_finished() {
        let [all, of_files] = ["VmHWM:", "RssFile:"].map(|name| memory_of(pid, name));
        let of_files = if cfg!(debug_assertions) { of_files } else { Some(0) };
        if let (Some(all), Some(of_files)) = (all, of_files) {
            peak = peak.max(all.saturating_sub(of_files));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    (peak, document(ended.join().unwrap()))
}

/// Maximum memory of a fetch.
#[cfg(target_os = "linux")]
const MAX_BYTES: u64 = 64 << 20;
