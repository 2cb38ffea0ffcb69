//! Whole repositories from a snapshot and the commits after it.

use std::collections::{BTreeMap, HashSet};

use codec::{Cid, car};
use verify::repository::{self, Options};
use wireproof_archive::{Archive, LaterEvent, NewestRepository, Subject};

use crate::common::archive;
use crate::common::changed_file::{change, flip};
use crate::common::writers::{Writers, after, received};

const NO_EVENTS: [LaterEvent; 0] = [];

/// Frames of an account as events.
fn events<'f>(
    writers: &Writers,
    account: usize,
    frames: impl IntoIterator<Item = &'f Vec<u8>>,
) -> Vec<LaterEvent> {
    let key = writers.accounts[account].key().to_did_key();
    let event =
        |frame: &Vec<u8>| LaterEvent { frame: frame.clone().into(), key: Some(key.clone()) };
    frames.into_iter().map(event).collect()
}

/// The CAR of a repository.
async fn car_of(repository: &NewestRepository) -> Vec<u8> {
    let (mut blocks, mut car) = (repository.blocks().await.unwrap(), Vec::new());
    while let Some(part) = blocks.next_part().await.unwrap() {
        car.extend(part);
    }
    car
}

fn blocks_of(car: &[u8]) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let car = car::read(car, &car::Options::default()).unwrap();
    let blocks = car.blocks.iter().map(|of| (of.cid.as_bytes().to_vec(), of.data.to_vec()));
    blocks.collect()
}

/// Compares a repository with the one that its account has.
async fn assert_is(found: &NewestRepository, writers: &mut Writers, account: usize) {
    let account = &mut writers.accounts[account];
    let (car, expected) = (car_of(found).await, account.repository.export(Vec::new()).unwrap());
    assert_eq!(blocks_of(&car), blocks_of(&expected), "{}", account.did());
    let verified = repository::verify(&car, None, &account.key(), &Options::default()).unwrap();
    assert_eq!((verified.commit().rev, verified.commit().did), (found.rev(), account.did()));
}

#[tokio::test]
async fn a_whole_history_or_a_repository_with_later_commits_is_the_account_s_repository() {
    for has_snapshot in [false, true] {
        let (mut writers, (_folder, archive)) = (Writers::new(2, 20), archive());
        let mut frames = writers.commits(60);
        if has_snapshot {
            frames.clear();
            for account in &mut writers.accounts {
                account.snapshot(&archive, 0).await;
            }
        }
        frames.extend(writers.commits(60));
        writers.import(&archive, &frames, "stream", 0).await;
        let later: Vec<Vec<u8>> = writers.commits(20);
        for account in 0..2 {
            let did = writers.accounts[account].did().to_owned();
            let new = events(&writers, account, &later);
            let found = archive.newest_repository(&did, new).await.unwrap().unwrap();
            assert_is(&found, &mut writers, account).await;
            // What is in the archive already changes nothing.
            let again = events(&writers, account, frames.iter().chain(&later));
            let found = archive.newest_repository(&did, again).await.unwrap().unwrap();
            assert_is(&found, &mut writers, account).await;
        }
    }
}

#[tokio::test]
async fn a_repository_of_which_a_commit_is_missing_is_none_until_it_is_stored_again() {
    let (mut writers, (_folder, archive)) = (Writers::new(1, 21), archive());
    let mut frames = writers.commits(20);
    let did = writers.accounts[0].did().to_owned();
    frames.remove(10);
    writers.import(&archive, &frames, "stream", 0).await;
    assert!(archive.newest_repository(&did, NO_EVENTS).await.unwrap().is_none());
    writers.accounts[0].snapshot(&archive, 0).await;
    let found = archive.newest_repository(&did, NO_EVENTS).await.unwrap().unwrap();
    assert_is(&found, &mut writers, 0).await;
    // A later commit that does not continue the repository.
    let later = writers.commits(2);
    let later = events(&writers, 0, &later);
    let skipped = later[1..].to_vec();
    assert!(archive.newest_repository(&did, skipped).await.unwrap().is_none());
    let of_another = LaterEvent { key: Some(FOREIGN_KEY.to_owned()), ..later[0].clone() };
    assert!(archive.newest_repository(&did, [of_another]).await.unwrap().is_none());
    assert!(archive.newest_repository("did:web:unknown.test", later).await.unwrap().is_none());
}

#[tokio::test]
async fn an_empty_repository_and_one_without_later_commits_are_whole() {
    let (mut writers, (_folder, archive)) = (Writers::new(1, 22), archive());
    let path = "app.test.c0/a";
    let created = writers.create(0, path, &crate::common::writers::record(path, 1, "a post"));
    let deleted = writers.delete(0, path);
    writers.accounts[0].snapshot(&archive, 0).await;
    let did = writers.accounts[0].did().to_owned();
    let before = events(&writers, 0, &[created, deleted]);
    let found = archive.newest_repository(&did, before).await.unwrap().unwrap();
    assert_is(&found, &mut writers, 0).await;
    let later = writers.commits(3);
    let later = events(&writers, 0, &later);
    let found = archive.newest_repository(&did, later).await.unwrap().unwrap();
    assert_is(&found, &mut writers, 0).await;
}

#[tokio::test]
async fn records_and_their_absence_are_proved_and_blocks_selected() {
    let (mut writers, (_folder, archive)) = (Writers::new(1, 23), archive());
    let frames = writers.commits(40);
    writers.accounts[0].snapshot(&archive, 0).await;
    let later = writers.commits(5);
    writers.import(&archive, &frames, "stream", 0).await;
    let did = writers.accounts[0].did().to_owned();
    let later = events(&writers, 0, &later);
    let found = archive.newest_repository(&did, later).await.unwrap().unwrap();
    let key = writers.accounts[0].key();
    let mut paths = writers.accounts[0].paths().to_vec();
    assert!(paths.len() > 5);
    paths.push("app.test.c0/absent".to_owned());
    for path in &paths {
        let slice = found.prove_record(path).await.unwrap();
        let proof = verify::record::verify(
            &slice,
            path,
            Some(&did),
            &key,
            &verify::record::Options::default(),
        )
        .unwrap();
        let is_present = !path.ends_with("absent");
        assert_eq!((proof.record().is_some(), proof.extra().blocks), (is_present, 0), "{path}");
    }
    let all = blocks_of(&car_of(&found).await);
    let cids: Vec<Cid> = all.keys().map(|cid| Cid::from_bytes(cid).unwrap()).collect();
    for wanted in [&cids[..1], &cids[2..7], &cids[..]] {
        let wanted: HashSet<Cid> = wanted.iter().copied().collect();
        let selected = found.blocks().await.unwrap().select(&wanted).await.unwrap().unwrap();
        let selected = blocks_of(&selected);
        assert_eq!(selected.len(), wanted.len());
        assert!(selected.iter().all(|(cid, block)| all.get(cid) == Some(block)));
    }
    let foreign = HashSet::from([Cid::of(codec::cid::Codec::DagCbor, b"\xa0")]);
    assert!(found.blocks().await.unwrap().select(&foreign).await.unwrap().is_none());
}

#[tokio::test]
async fn an_account_with_something_hidden_has_no_whole_repository() {
    let (mut writers, (_folder, archive)) = (Writers::new(2, 24), archive());
    let frames = writers.commits(20);
    writers.import(&archive, &frames, "stream", 0).await;
    let did = writers.accounts[0].did().to_owned();
    let path = writers.accounts[0].paths()[0].clone();
    let (collection, rkey) = path.split_once('/').unwrap();
    let [collection, rkey] = [collection, rkey].map(str::to_owned);
    let record = Subject::Record { did: did.clone(), collection, rkey };
    archive.hide(&record, "a test", received(1)).await.unwrap();
    assert!(archive.newest_repository(&did, NO_EVENTS).await.unwrap().is_none());
    let other = writers.accounts[1].did().to_owned();
    assert!(archive.newest_repository(&other, NO_EVENTS).await.unwrap().is_some());
    archive.hide(&Subject::Account(other.clone()), "a test", received(1)).await.unwrap();
    assert!(archive.newest_repository(&other, NO_EVENTS).await.unwrap().is_none());
}

#[tokio::test]
async fn a_repository_with_a_changed_record_is_none() {
    let (mut writers, (folder, archive)) = (Writers::new(1, 25), archive());
    writers.commits(5);
    writers.accounts[0].snapshot(&archive, 0).await;
    let did = writers.accounts[0].did().to_owned();
    assert!(archive.newest_repository(&did, NO_EVENTS).await.unwrap().is_some());
    change(folder.path(), "records", "record", |column| flip(column));
    let changed = Archive::open(folder.path().to_str().unwrap()).unwrap();
    assert!(changed.newest_repository(&did, NO_EVENTS).await.unwrap().is_none());
}

/// Histories with missing commits, repositories at any time, repeated and compact events.
#[tokio::test]
async fn whatever_is_stored_is_the_newest_repository_or_none() {
    let (mut whole, mut none) = (0, 0);
    for seed in 0..10 {
        let (mut writers, (_folder, archive)) = (Writers::new(4, 200 + seed), archive());
        for day in 0..4 {
            let mut frames = writers.commits(25);
            if writers.random(2) == 0 {
                frames.remove(writers.random(25) as usize);
            }
            if writers.random(2) == 0 {
                let account = writers.random(4) as usize;
                if writers.accounts[account].repository.head().is_some() {
                    writers.accounts[account].snapshot(&archive, day).await;
                }
            }
            writers.import(&archive, &frames, &format!("day {day}"), day).await;
            match writers.random(3) {
                0 => drop(archive.thin(after(day - 1)).await.unwrap()),
                1 => drop(archive.compact(after(day)).await.unwrap()),
                _ => {}
            }
            for account in 0..4 {
                let did = writers.accounts[account].did().to_owned();
                match archive.newest_repository(&did, NO_EVENTS).await.unwrap() {
                    // The last commit of the account may be the one that is missing.
                    Some(found) if is_newest(&found, &writers, account) => {
                        assert_is(&found, &mut writers, account).await;
                        whole += 1;
                    }
                    _ => none += 1,
                }
            }
        }
    }
    assert!(whole > 40 && none > 20, "{whole} whole, {none} not");
}

const FOREIGN_KEY: &str = "did:key:zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme";

fn is_newest(found: &NewestRepository, writers: &Writers, account: usize) -> bool {
    writers.accounts[account].repository.head().as_ref() == Some(found.commit())
}
