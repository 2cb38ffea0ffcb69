//! What people do on a PDS, and what a client must have of it in the end.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::block_in_place;
use wireproof::atproto::repo::{Options, Repository};
use wireproof_interop::pds::{Account, Pds, Write};
use wireproof_interop::plc::Plc;

use crate::client::Client;
use crate::mirror::{Records, records};

/// Some people of one PDS.
pub(crate) struct Life {
    pub(crate) people: Vec<Account>,
}

impl Life {
    /// Three people join.
    pub(crate) async fn begin(pds: &Pds) -> Self {
        let mut people = Vec::new();
        for name in ["ann", "bob", "cyd"] {
            people.push(pds.create_account(name).await);
        }
        Self { people }
    }

    /// Each of them writes new records, alone and many at once, changes some and deletes some.
    pub(crate) async fn go_on(&self, pds: &Pds, what: &str) {
        for person in &self.people {
            let record = |path: &str, number| record(path, what, number);
            let mut paths = Vec::new();
            for number in 0..12 {
                paths.push(pds.create(person, NOTE, record(NOTE, number)).await);
            }
            pds.put(person, &paths[0], record(NOTE, 100)).await;
            pds.put(person, PROFILE, record(PROFILE, 101)).await;
            pds.delete(person, &paths[1]).await;
            let many = (0..20).map(|number| Write::Create(MARK, record(MARK, number)));
            pds.apply(person, &many.collect::<Vec<_>>()).await;
            let mixed = [
                Write::Update(&paths[2], record(NOTE, 102)),
                Write::Delete(&paths[3]),
                Write::Create(NOTE, record(NOTE, 103)),
            ];
            pds.apply(person, &mixed).await;
        }
    }

    /// Lets each of them write one record after the other until the PDS does not answer. Returns when some
    /// are written and the next one is under way.
    pub(crate) async fn write_until_it_is_gone(&self, pds: &Pds) {
        let (pen, people) = (pds.pen(), self.people.clone());
        let (sender, mut written) = watch::channel(0);
        tokio::spawn(async move {
            for (number, person) in (0..).zip(people.iter().cycle()) {
                let record = record(NOTE, "while it died", number);
                if !pen.try_create(person, NOTE, record).await {
                    return;
                }
                sender.send_replace(number);
            }
        });
        written.wait_for(|written| *written >= SOME_WRITES).await.expect("it is alive");
    }

    /// Waits until `client` has what the PDS has, and holds both and each repository against each other.
    pub(crate) async fn is_mirrored(&self, client: &Client, plc: &Plc, pds: &Pds) {
        for person in &self.people {
            let rev = pds.rev(person).await;
            let what = format!("revision {rev} of {}", person.handle);
            client.wait_until(&what, |mirror| mirror.has(&person.did, &rev)).await;
            let listed = pds.records(person).await;
            assert_eq!(client.mirror().replicas[&person.did].records, listed, "{what}");
            let proved = block_in_place(|| proved_records(plc, pds, &person.handle));
            assert_eq!(proved, listed, "{what}");
        }
    }
}

/// What the repository of `handle` holds, once `wireproof verify` has proved everything from the handle to
/// the last record.
fn proved_records(plc: &Plc, pds: &Pds, handle: &str) -> Records {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, port) = (folder.path().join("saved.car"), pds.port().to_string());
    let mut verify = Command::new(wireproof());
    verify.args(["verify", handle, "--plc", &plc.url(), "--development-port", &port]);
    let output = verify.arg("--save").arg(&file).output().expect("the command runs");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{handle}: {complaint}");
    let export = fs::read(file).expect("what was fetched");
    records(&Repository::read(&export, &Options::default()).expect("it was proved"))
}

/// The command, which is built into the folder above that of the tests.
fn wireproof() -> PathBuf {
    let test = env::current_exe().expect("the path of this test");
    let command = test.ancestors().nth(2).expect("target/PROFILE/deps").join("wireproof");
    assert!(command.exists(), "{} is not built: cargo xtask interop does that", command.display());
    command
}

/// A record for a path, or for anywhere in a collection.
fn record(path: &str, what: &str, number: u32) -> Value {
    let collection = path.split('/').next();
    json!({ "$type": collection, "text": format!("{what} {number}"), "createdAt": NOON })
}

const SOME_WRITES: u32 = 5;
const NOON: &str = "2026-01-01T12:00:00Z";
pub(crate) const NOTE: &str = "com.example.note";
const MARK: &str = "com.example.mark";
const PROFILE: &str = "com.example.profile/self";
