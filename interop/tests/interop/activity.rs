//! Writes of several accounts on a PDS, and the check that a client mirrors them.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

use atproto::repo::{Options, Repository};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::block_in_place;
use wireproof_interop::pds::{Account, Pds, Plc, Write};

use crate::client::{Client, Records, records};

/// The accounts of one PDS.
pub(crate) struct Activity {
    pub(crate) accounts: Vec<Account>,
}

impl Activity {
    /// Creates three accounts.
    pub(crate) async fn start(pds: &Pds) -> Self {
        let mut accounts = Vec::new();
        for name in ["ann", "bob", "cyd"] {
            accounts.push(pds.create_account(name).await);
        }
        Self { accounts }
    }

    /// Creates, updates and deletes records of every account, singly and in batches.
    pub(crate) async fn write_records(&self, pds: &Pds, what: &str) {
        for account in &self.accounts {
            let record = |path: &str, number| record(path, what, number);
            let mut paths = Vec::new();
            for number in 0..12 {
                paths.push(pds.create(account, NOTE, record(NOTE, number)).await);
            }
            pds.put(account, &paths[0], record(NOTE, 100)).await;
            pds.put(account, PROFILE, record(PROFILE, 101)).await;
            pds.delete(account, &paths[1]).await;
            let many = (0..20).map(|number| Write::Create(MARK, record(MARK, number)));
            pds.apply(account, &many.collect::<Vec<_>>()).await;
            let mixed = [
                Write::Update(&paths[2], record(NOTE, 102)),
                Write::Delete(&paths[3]),
                Write::Create(NOTE, record(NOTE, 103)),
            ];
            pds.apply(account, &mixed).await;
        }
    }

    /// Creates records one after the other until the PDS does not respond. Returns while a request is in
    /// progress after some records.
    pub(crate) async fn write_until_killed(&self, pds: &Pds) {
        let (creator, accounts) = (pds.record_creator(), self.accounts.clone());
        let (sender, mut written) = watch::channel(0);
        tokio::spawn(async move {
            for (number, account) in (0..).zip(accounts.iter().cycle()) {
                let record = record(NOTE, "during the crash", number);
                if !creator.try_create(account, NOTE, record).await {
                    return;
                }
                sender.send_replace(number);
            }
        });
        written.wait_for(|written| *written >= SOME_WRITES).await.expect("a running PDS");
    }

    /// Waits until `client` has the newest revisions, and compares its records, the ones that the PDS lists
    /// and the ones of every verified repository.
    pub(crate) async fn assert_mirrored(&self, client: &Client, plc: &Plc, pds: &Pds) {
        for account in &self.accounts {
            let rev = pds.rev(account).await;
            let what = format!("revision {rev} of {}", account.handle);
            client.wait_until(&what, |mirror| mirror.has(&account.did, &rev)).await;
            let listed = pds.records(account).await;
            assert_eq!(client.mirror().replicas[&account.did].records, listed, "{what}");
            let proved = block_in_place(|| proved_records(plc, pds, &account.handle));
            assert_eq!(proved, listed, "{what}");
        }
    }
}

/// The records of the repository of `handle`, verified by `wireproof verify` from the handle to the last
/// record.
fn proved_records(plc: &Plc, pds: &Pds, handle: &str) -> Records {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, port) = (folder.path().join("saved.car"), pds.port().to_string());
    let mut verify = Command::new(wireproof());
    verify.args(["verify", handle, "--plc", &plc.url(), "--development-port", &port]);
    let output = verify.arg("--save").arg(&file).output().expect("the command runs");
    let error_output = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{handle}: {error_output}");
    let export = fs::read(file).expect("the saved archive");
    records(&Repository::read(&export, &Options::default()).expect("a verified archive"))
}

/// The path of the command, in the folder above the tests' folder.
pub(crate) fn wireproof() -> PathBuf {
    let test = env::current_exe().expect("the path of this test");
    let command = test.ancestors().nth(2).expect("target/PROFILE/deps").join("wireproof");
    assert!(command.exists(), "{} is not built: cargo xtask interop does that", command.display());
    command
}

/// A record for a path, or for anywhere in a collection.
pub(crate) fn record(path: &str, what: &str, number: u32) -> Value {
    let collection = path.split('/').next();
    json!({ "$type": collection, "text": format!("{what} {number}"), "createdAt": NOON })
}

const SOME_WRITES: u32 = 5;
const NOON: &str = "2026-01-01T12:00:00Z";
pub(crate) const NOTE: &str = "com.example.note";
const MARK: &str = "com.example.mark";
const PROFILE: &str = "com.example.profile/self";
