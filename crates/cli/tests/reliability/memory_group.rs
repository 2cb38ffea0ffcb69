//! A container with a limit of memory, whose files are in memory too: fetched repositories fit into it, and the process is
//! not killed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use simnet::servers::{Fault, FaultSchedule, Server, Simulation, Spec};

use crate::follow::{self, Follow};
use crate::{report, scaled};

#[test]
fn endless_repositories_on_a_disk_in_memory_stay_below_the_limit_of_a_container() {
    let (limit, bound) = scaled((192 << 20, 32 << 20), (1 << 30, 512 << 20));
    let group = MemoryGroup::new(limit);
    let what = "a control group of memory that this user may make, and /dev/shm";
    conformance::record(conformance::test_name!(), what, group.is_some());
    let Some(group) = group else { return };
    let accounts = scaled(24, 200);
    let spec = Spec { accounts, records: 10, pds: 1, jetstreams: 0, ..Spec::default() };
    let sim = Simulation::start(spec).unwrap();
    let folder = tempfile::tempdir_in(IN_MEMORY).unwrap();
    sim.faults().enable(Server::Pds(0), Fault::EndlessRepo, FaultSchedule::ALWAYS);
    let args = ["--resync", "--resync-bytes", &format!("{bound}")];
    let mut follow = Follow::spawn(group.with(&follow::command(&sim, folder.path(), &args)), 0);
    (0..accounts).for_each(|account| sim.write_commit_as(account));
    for account in 0..accounts {
        sim.write_unannounced(account);
        sim.write_commit_as(account);
    }
    // A process that is killed for its memory ends this wait.
    follow.wait_until("a request for each repository, and their bytes", |_| {
        let requests = sim.request_counts(Server::Pds(0));
        let all = requests.get(GET_REPO).is_some_and(|count| *count >= accounts as u64);
        // One repository may have half of the bytes, and how many are fetched at a time depends on the machine.
        all && group.peak() > bound / 2
    });
    let peak = group.peak();
    report(&format!("{accounts} endless repositories: {} MiB of {}", peak >> 20, limit >> 20));
    assert!((1..limit).contains(&peak), "{peak} bytes");
    drop(follow.kill());
}

/// A control group of memory, in which processes may use a limited number of bytes. Dropping it removes it.
struct MemoryGroup {
    folder: PathBuf,
    peak: &'static str,
}

impl MemoryGroup {
    /// `None` where there is no such group, or this user may not make one.
    fn new(limit: u64) -> Option<Self> {
        let name = format!("wireproof-{}", std::process::id());
        let forms = [
            ("/sys/fs/cgroup", "memory.max", "memory.peak"),
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.max_usage_in_bytes"),
        ];
        let has_disk = Path::new(IN_MEMORY).is_dir();
        forms.into_iter().filter(|_| has_disk).find_map(|(root, max, peak)| {
            let group = Self { folder: Path::new(root).join(&name), peak };
            fs::create_dir(&group.folder).ok()?;
            let is_limited = fs::write(group.folder.join(max), limit.to_string()).is_ok();
            let is_joined = || group.with(&Command::new("true")).status().unwrap().success();
            (is_limited && group.folder.join(peak).exists() && is_joined()).then_some(group)
        })
    }

    /// The command in this group.
    fn with(&self, command: &Command) -> Command {
        let mut within = Command::new("sh");
        within.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]);
        within.arg(self.folder.join("cgroup.procs"));
        within.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => within.env(name, value),
                None => within.env_remove(name),
            };
        }
        within.env_remove("TMPDIR");
        within
    }

    /// The most bytes that its processes have used, files in memory among them.
    fn peak(&self) -> u64 {
        fs::read_to_string(self.folder.join(self.peak)).unwrap().trim().parse().unwrap()
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // The last process may not have left it; an empty group does no harm.
        let _ = fs::remove_dir(&self.folder);
    }
}

/// A disk in memory.
const IN_MEMORY: &str = "/dev/shm";
const GET_REPO: &str = "/xrpc/com.atproto.sync.getRepo";
