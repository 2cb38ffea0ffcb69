//! `follow` at a terminal: its display, and the state that it keeps.

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use simnet::servers::Server;

use crate::{quiet, wireproof, with_commits};

/// A terminal whose output is read on a thread of its own.
struct Terminal {
    side_of_program: OwnedFd,
    output: JoinHandle<String>,
}

impl Terminal {
    fn open() -> Self {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let name = ptsname(&controller, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY;
        let side_of_program = rustix::fs::open(name, flags, Mode::empty()).unwrap();
        let output = thread::spawn(move || read_to_end(File::from(controller)));
        Self { side_of_program, output }
    }

    fn stdio(&self) -> Stdio {
        self.side_of_program.try_clone().unwrap().into()
    }

    /// All output, once every program that has the terminal has ended.
    fn into_output(self) -> String {
        drop(self.side_of_program);
        self.output.join().unwrap()
    }
}

/// A terminal whose last program has ended is at its end, or fails.
fn read_to_end(mut controller: File) -> String {
    let (mut all, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(len @ 1..) = controller.read(&mut buffer) {
        all.extend_from_slice(&buffer[..len]);
    }
    String::from_utf8_lossy(&all).into_owned()
}

#[test]
fn a_delivering_run_shows_its_rate_its_histories_and_what_each_destination_got() {
    let (sim, dir) = (quiet(), tempfile::tempdir().unwrap());
    let dids = [0, 1].map(|account| sim.account(account).did.to_string());
    let database = dir.path().join("posts.db");
    let to = format!("sqlite:{}", database.display());
    let terminal = Terminal::open();
    let mut command = wireproof(&sim, "follow", &["--backfill", "--to", &to, "--events", "1"]);
    command.args(["--dids", &dids.join(","), "--cursor", "oldest"]);
    command.arg("--state").arg(dir.path().join("state"));
    // Both, as at a person's terminal.
    command.stdin(Stdio::null()).stdout(terminal.stdio()).stderr(terminal.stdio());
    let mut running = command.spawn().unwrap();
    drop(command);
    for _ in 0..2 {
        sim.write_commits(20);
    }
    assert!(running.wait().unwrap().success());
    let shown = terminal.into_output();
    let history = format!("{}: history stored", dids[0]);
    for part in ["/s · history", " to sqlite-posts.db", &history, "events delivered"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let rows = shown.split_once(" rows of ").unwrap().0.rsplit(' ').next().unwrap();
    let connection = rusqlite::Connection::open(database).unwrap();
    let count = connection.query_row("SELECT count(*) FROM record", (), |row| row.get::<_, i64>(0));
    // Deleted records have no row any more.
    assert!((1..=rows.parse::<i64>().unwrap()).contains(&count.unwrap()), "{shown}");
}

#[test]
fn a_run_that_prints_to_a_terminal_keeps_no_state_unless_it_is_named() {
    let (sim, dir) = (with_commits(5), tempfile::tempdir().unwrap());
    let folders = ["home", "temporary", "named"].map(|name| dir.path().join(name));
    let [home, temporary, named] = &folders;
    folders.iter().for_each(|folder| fs::create_dir(folder).unwrap());
    let run = |more: &[&str]| {
        let terminal = Terminal::open();
        let mut command = wireproof(&sim, "follow", &["--cursor", "oldest", "--events", "5"]);
        command.env("XDG_STATE_HOME", home).env("TMPDIR", temporary).args(more);
        command.stdin(Stdio::null()).stdout(terminal.stdio()).stderr(Stdio::null());
        assert!(ended(command));
        terminal.into_output().matches("\"seq\":").count()
    };
    assert_eq!([run(&[]), run(&[])], [5, 5], "the second run begins where the first did");
    for folder in [home, temporary] {
        assert_eq!(fs::read_dir(folder).unwrap().count(), 0, "{}", folder.display());
    }
    assert_eq!(run(&["--state", named.to_str().unwrap()]), 5);
    assert!(named.join("state.sqlite").exists());
    assert!(sim.sent_events(Server::Relay(0)).len() >= 5);
}

/// Whether the command succeeds. Its copies of a terminal are closed.
fn ended(mut command: Command) -> bool {
    let mut running = command.spawn().unwrap();
    drop(command);
    running.wait().unwrap().success()
}
