//! The blobs of accounts of the reference PDS, fetched into an archive.

use std::fs;
use std::process::{Command, Output};

use serde_json::{Value, json};
use tokio::task::block_in_place;
use wireproof_interop::kit;
use wireproof_interop::pds::{Account, Pds, Plc};

use crate::activity::wireproof;

#[tokio::test(flavor = "multi_thread")]
async fn blobs_of_the_reference_pds_are_fetched_by_the_records_that_name_them_and_erased() {
    let kit = kit!(Pds);
    let plc = Plc::start(&kit).await;
    let pds = Pds::start(&kit, &plc).await;
    let (ann, bob) = (pds.create_account("ann").await, pds.create_account("bob").await);
    let page = b"<!doctype html><title>a page</title>".to_vec();
    let large: Vec<u8> = (0..3_000_000_u32).map(|number| (number % 251) as u8).collect();
    name_blob(&pds, &ann, "text/html", page.clone()).await;
    name_blob(&pds, &ann, "application/octet-stream", large).await;
    let deleted = name_blob(&pds, &ann, "text/plain", b"of a deleted record".to_vec()).await;
    pds.delete(&ann, &deleted).await;
    name_blob(&pds, &bob, "text/html", page).await;

    let folder = tempfile::tempdir().expect("a folder");
    let archive = folder.path().join("archive").display().to_string();
    let port = pds.port().to_string();
    let run = |args: &[&str]| -> Output {
        let mut command = Command::new(wireproof());
        command
            .args(args)
            .env("XDG_CONFIG_HOME", folder.path())
            .env("XDG_DATA_HOME", folder.path());
        command.env("WIREPROOF_PLC", plc.url()).env("WIREPROOF_DEVELOPMENT_PORT", &port);
        block_in_place(|| command.output()).expect("the command runs")
    };
    let document = |args: &[&str]| -> Value {
        let output = run(args);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {errors}");
        serde_json::from_slice(&output.stdout).expect("a document")
    };
    let fetched = document(&["blobs", "fetch", &archive, "ann.test", &bob.did, "--json"]);
    assert_eq!((&fetched["blob_count"], &fetched["missing_count"]), (&json!(3), &json!(0)));
    // Both name the page.
    assert!(fetched["fetched_count"].as_u64().is_some_and(|count| (2..=3).contains(&count)));
    let checked = document(&["blobs", "verify", &archive, "--json"]);
    assert_eq!((&checked["present_count"], &checked["findings"]), (&json!(3), &json!([])));
    let verified = document(&["archive", "verify", &archive, "--json"]);
    assert_eq!(verified["proved_blob_count"], 3);

    let key = folder.path().join("erasure-key");
    fs::write(&key, "07".repeat(32)).expect("the key");
    let key = key.display().to_string();
    let erase = ["archive", "erase", &archive, "--erasure-key", &key, "--json", "--did"];
    let erased = document(&[&erase[..], &[&ann.did]].concat());
    assert_eq!(erased["blob_count"], 1, "the page stays for bob");
    let checked = document(&["blobs", "verify", &archive, "--json"]);
    assert_eq!((&checked["account_count"], &checked["present_count"]), (&json!(1), &json!(1)));
}

/// Uploads a blob, creates a record that names it, and returns the path of the record.
async fn name_blob(pds: &Pds, account: &Account, media_type: &str, blob: Vec<u8>) -> String {
    let file = pds.upload(account, media_type, blob).await;
    pds.create(account, "app.test.file", json!({ "$type": "app.test.file", "file": file })).await
}
