//! Archives of a simulated network, honest and not, are read and proved.

use std::collections::BTreeMap;

use archive::{Archive, ErasureKey, Ledger, VerifyOptions};
use codec::Cid;
use codec::cid::Codec;
use net::jetstream::Token;
use program::failure::Failure;
use program::network::NetworkArgs;
use simnet::servers::{
    AccountStatus, Fault, FaultSchedule, HostedArchive, Server, Simulation, Spec,
};
use wireproof_jetstream_archive::segment::{RowKind, Segment};
use wireproof_jetstream_archive::{
    AccountVerdict, Differences, ImportOptions, Summary, Verdict, import,
};

const JETSTREAM: Server = Server::Jetstream(0);

fn network(change: impl FnOnce(&mut Spec)) -> Simulation {
    let archive = HostedArchive {
        events_per_block: 16,
        blocks_per_segment: 4,
        plan_entries: 3,
        ..HostedArchive::default()
    };
    let mut spec = Spec { accounts: 12, records: 30, archive, ..Spec::default() };
    change(&mut spec);
    Simulation::start(spec).unwrap()
}

fn options(sim: &Simulation) -> ImportOptions {
    let mut options = ImportOptions::new(sim.url(JETSTREAM).parse().unwrap());
    options.network = NetworkArgs::default();
    options.network.development = true;
    options.network.plc = Some(sim.url(Server::Plc).parse().unwrap());
    options.max_rate = 1000.0;
    options
}

type Verdicts = BTreeMap<String, AccountVerdict>;

async fn run(
    options: &ImportOptions,
    archive: Option<&Archive>,
) -> Result<(Summary, Verdicts), Failure> {
    let mut verdicts = Verdicts::new();
    let mut add = |verdict: &AccountVerdict| {
        assert!(verdicts.insert(verdict.did.clone(), verdict.clone()).is_none(), "one verdict");
        Ok(())
    };
    let summary = import(options, archive, &mut add).await?;
    Ok((summary, verdicts))
}

fn code(verdict: &AccountVerdict) -> Option<&str> {
    verdict.code.as_deref()
}

async fn refusal(sim: &Simulation, fault: Fault) -> String {
    sim.faults().enable(JETSTREAM, fault, FaultSchedule::ALWAYS);
    let refused = run(&options(sim), None).await.unwrap_err();
    sim.faults().disable(JETSTREAM, fault);
    assert!(matches!(refused, Failure::Refused(_)), "{refused:?}");
    assert!(sim.faults().fired(JETSTREAM, fault) > 0);
    refused.to_string()
}

#[tokio::test]
async fn an_honest_archive_is_proved_and_stored_as_a_backfill_stores_it() {
    let sim = network(|_| ());
    let folder = tempfile::tempdir().unwrap();
    let archive = Archive::open(folder.path().to_str().unwrap()).unwrap();
    let (summary, verdicts) = run(&options(&sim), Some(&archive)).await.unwrap();
    for expected in sim.expected_accounts() {
        let verdict = &verdicts[&expected.account.did];
        assert_eq!((verdict.verdict, code(verdict)), (Verdict::Proved, None), "{verdict:?}");
        assert_eq!(verdict.record_count, expected.records.len() as u64);
        assert_eq!(verdict.rev.as_deref(), Some(&*expected.rev.to_string()));
    }
    assert_eq!((summary.account_count, summary.proved_count, summary.stored_count), (12, 12, 12));
    assert_eq!((summary.population_count, summary.is_population_exact), (12, true));
    summary.result().unwrap();
    let mut findings = Vec::new();
    let options_of = VerifyOptions::default();
    let report = archive.verify(&options_of, &mut |finding| findings.push(finding)).await.unwrap();
    assert!(findings.is_empty() && report.snapshots >= 12, "{findings:?} {report:?}");
    let ledger = Ledger::new(&archive, "jetstream").unwrap();
    let lists = ledger.lists().await.unwrap();
    let pages = ledger.pages(&lists[0].list).await.unwrap();
    assert_eq!(pages.iter().map(|page| page.stored).sum::<u64>(), 12);
    // The same archive again adds nothing to the tables.
    let (again, _) = run(&options(&sim), Some(&archive)).await.unwrap();
    assert_eq!((again.proved_count, again.stored_byte_count), (12, 0));
}

#[tokio::test]
async fn forged_altered_and_withheld_records_are_named_by_their_paths() {
    let sim = network(|spec| spec.records = 300);
    for fault in [Fault::ForgedRecord, Fault::AlteredRecord, Fault::WithheldRecord] {
        sim.faults().enable(JETSTREAM, fault, FaultSchedule::ONCE);
    }
    let (summary, verdicts) = run(&options(&sim), None).await.unwrap();
    let wrong: Vec<&AccountVerdict> =
        verdicts.values().filter(|verdict| verdict.verdict == Verdict::Wrong).collect();
    assert_eq!((summary.wrong_count, wrong.len(), summary.proved_count), (3, 3, 9));
    let counts =
        [summary.unsigned_record_count, summary.altered_record_count, summary.missing_record_count];
    assert_eq!(counts, [1, 1, 1]);
    let expected: BTreeMap<_, _> = sim
        .expected_accounts()
        .into_iter()
        .map(|expected| (expected.account.did.clone(), expected))
        .collect();
    for verdict in wrong {
        let signed = &expected[&verdict.did].records;
        let differences = &verdict.differences;
        match code(verdict).unwrap() {
            "jetstream/unsigned-record" => {
                let path = &differences.unsigned.paths[0];
                assert!(path.ends_with("/zzzzzzzzzzzzz") && !signed.contains_key(path), "{path}");
            }
            "jetstream/altered-record" => {
                assert!(signed.contains_key(&differences.altered.paths[0]));
            }
            "jetstream/missing-record" => {
                assert!(signed.contains_key(&differences.missing.paths[0]));
            }
            other => panic!("{other}"),
        }
        // Of some hundred nodes, only the ones above the difference are fetched.
        assert!((1..=12).contains(&verdict.fetched_node_count), "{verdict:?}");
    }
    assert!(matches!(summary.result(), Err(Failure::Refused(_))));
}

#[tokio::test]
async fn an_account_that_has_moved_on_is_newer_and_no_forgery() {
    let sim = network(|_| ());
    sim.seal_archive(JETSTREAM);
    sim.write_commit_as(3);
    let (summary, verdicts) = run(&options(&sim), None).await.unwrap();
    let verdict = &verdicts[&sim.account(3).did];
    assert_eq!((verdict.verdict, code(verdict)), (Verdict::Newer, Some("jetstream/newer")));
    assert!(verdict.rev > verdict.archived_rev && !verdict.differences.is_empty());
    assert_eq!((summary.newer_count, summary.wrong_count, summary.proved_count), (1, 0, 11));
    summary.result().unwrap();
    // Sealed again, the archive has the commit.
    sim.seal_archive(JETSTREAM);
    assert_eq!(run(&options(&sim), None).await.unwrap().0.proved_count, 12);
}

#[tokio::test]
async fn accounts_that_cannot_be_checked_have_their_reasons() {
    let sim = network(|spec| spec.pds = 3);
    sim.set_account_status(0, AccountStatus::Deactivated);
    sim.seal_archive(JETSTREAM);
    sim.set_account_status(1, AccountStatus::TakenDown);
    sim.delete_account(2);
    sim.sign_with_unregistered_key(3);
    let gone: Vec<usize> = (4..12).filter(|number| sim.account(*number).host == 2).collect();
    sim.stop_server(Server::Pds(2));
    let (summary, verdicts) = run(&options(&sim), None).await.unwrap();
    let of = |number: usize| {
        let verdict = &verdicts[&sim.account(number).did];
        (verdict.verdict, code(verdict).unwrap_or_default().to_owned())
    };
    assert_eq!(of(0), (Verdict::Inactive, "deactivated".into()));
    assert_eq!(of(1), (Verdict::Inactive, "takendown".into()));
    assert_eq!(of(2), (Verdict::Inactive, "deleted".into()));
    assert_eq!(of(3), (Verdict::Unproved, "signature/wrong".into()));
    assert!(!gone.is_empty());
    for number in &gone {
        assert_eq!(of(*number), (Verdict::Unproved, "unreachable".into()));
    }
    assert_eq!(summary.proved_count, 12 - 4 - gone.len() as u64);
    assert!(matches!(summary.result(), Err(Failure::Refused(_))));
}

#[tokio::test]
async fn collections_are_proved_without_the_others_and_stored_as_parts() {
    let sim = network(|_| ());
    sim.faults().enable(JETSTREAM, Fault::ForgedRecord, FaultSchedule::ONCE);
    let folder = tempfile::tempdir().unwrap();
    let archive = Archive::open(folder.path().to_str().unwrap()).unwrap();
    let mut options = options(&sim);
    options.collections =
        ["app.bsky.feed.*", "app.bsky.graph.follow"].map(|name| name.parse().unwrap()).into();
    let (summary, verdicts) = run(&options, Some(&archive)).await.unwrap();
    assert_eq!((summary.account_count, summary.stored_count), (12, summary.proved_count));
    let report = archive.verify(&VerifyOptions::default(), &mut |_| ()).await.unwrap();
    assert!(!report.is_refused(), "{report:?}");
    assert_eq!((report.proved_parts, report.snapshots), (summary.proved_count, 0));
    for expected in sim.expected_accounts() {
        let is_in = |path: &&String| {
            path.starts_with("app.bsky.feed.") || path.starts_with("app.bsky.graph.follow/")
        };
        let verdict = &verdicts[&expected.account.did];
        if verdict.verdict == Verdict::Proved {
            let records = expected.records.keys().filter(is_in).count() as u64;
            assert_eq!(verdict.record_count, records, "{}", verdict.did);
        }
    }
    // The forged record is in the last collection of an account, which may be another one.
    assert!(summary.proved_count >= 11);
}

#[tokio::test]
async fn damaged_segments_and_lying_plans_are_refused_with_their_codes() {
    let sim = network(|_| ());
    let refusals = [
        (Fault::DamagedBlock, "jss/compression"),
        (Fault::WrongChecksum, "jss/checksum"),
        (Fault::UnknownVersion, "jss/version"),
        (Fault::PlanBeyond, "plan/progress"),
        (Fault::PlanStuck, "plan/progress"),
        (Fault::PlanName, "plan/name"),
        (Fault::PlanOrder, "plan/order"),
    ];
    for (fault, code) in refusals {
        let refused = refusal(&sim, fault).await;
        assert!(refused.contains(code), "{}: {refused}", fault.name());
    }
    assert_eq!(run(&options(&sim), None).await.unwrap().0.proved_count, 12);
}

#[tokio::test]
async fn segments_that_are_replaced_after_the_plan_are_planned_again() {
    let sim = network(|_| ());
    // Whole segments, and with few accounts blocks.
    let mut blocks = options(&sim);
    blocks.dids = vec![sim.account(5).did.parse().unwrap()];
    for (options, accounts) in [(options(&sim), 12), (blocks, 1)] {
        sim.faults().enable(JETSTREAM, Fault::PlanOutdated, FaultSchedule::times(2).after(1));
        assert_eq!(run(&options, None).await.unwrap().0.proved_count, accounts);
        assert!(sim.faults().fired(JETSTREAM, Fault::PlanOutdated) >= 2);
        // A server that never plans the segments that it has is given up.
        sim.faults().enable(JETSTREAM, Fault::PlanOutdated, FaultSchedule::ALWAYS);
        let refused = run(&options, None).await.unwrap_err().to_string();
        assert!(refused.contains("plan/replaced"), "{refused}");
        sim.faults().disable(JETSTREAM, Fault::PlanOutdated);
    }
}

#[tokio::test]
async fn a_host_with_an_earlier_commit_than_the_archive_refutes_nothing() {
    let sim = network(|_| ());
    // The archive is of a network whose first account has one more commit.
    let ahead = network(|_| ());
    ahead.write_commit_as(0);
    let mut options = options(&ahead);
    options.network.plc = Some(sim.url(Server::Plc).parse().unwrap());
    let (summary, verdicts) = run(&options, None).await.unwrap();
    let verdict = &verdicts[&sim.account(0).did];
    assert_eq!((verdict.verdict, code(verdict)), (Verdict::Unproved, Some("jetstream/older")));
    assert_eq!((summary.wrong_count, summary.proved_count), (0, 11));
}

#[tokio::test]
async fn an_erased_account_is_neither_stored_nor_named() {
    let sim = network(|_| ());
    let folder = tempfile::tempdir().unwrap();
    let secret = ErasureKey::read_or_create(&folder.path().join("erasure.key")).unwrap();
    let address = folder.path().join("archive");
    let archive = Archive::open(address.to_str().unwrap()).unwrap().with_erasure_key(Some(secret));
    run(&options(&sim), Some(&archive)).await.unwrap();
    let did = sim.account(4).did;
    archive.erase(&did, "asked", 1).await.unwrap();
    let (summary, verdicts) = run(&options(&sim), Some(&archive)).await.unwrap();
    assert!(!verdicts.contains_key(&did));
    assert_eq!((summary.account_count, summary.proved_count), (11, 11));
}

#[tokio::test]
async fn rate_limits_and_outages_of_the_archive_are_waited_for() {
    let sim = network(|_| ());
    let schedule = FaultSchedule::times(2).after(1).with_amount(1);
    sim.faults().enable(JETSTREAM, Fault::RequestTooMany, schedule);
    sim.faults().enable(JETSTREAM, Fault::RequestUnavailable, FaultSchedule::times(1).after(4));
    assert_eq!(run(&options(&sim), None).await.unwrap().0.proved_count, 12);
    assert_eq!(sim.faults().unfired(), []);
}

#[tokio::test]
async fn a_token_is_sent_and_printed_nowhere() {
    let token = "a-secret-token";
    let sim = network(|spec| spec.archive.token = Some(token.to_owned()));
    let mut options = options(&sim);
    let refused = run(&options, None).await.unwrap_err();
    assert!(
        matches!(&refused, Failure::Network(text) if text.contains("AuthMissing")),
        "{refused:?}"
    );
    options.token = Some(Token::new(&format!(" {token}\n")).unwrap());
    assert!(!format!("{options:?}").contains(token));
    assert_eq!(run(&options, None).await.unwrap().0.proved_count, 12);
    assert!(Token::new("two words").is_err() && Token::new("").is_err());
    // A server that redirects the request does not get it sent elsewhere.
    sim.faults().enable(JETSTREAM, Fault::PrivateRedirect, FaultSchedule::ALWAYS);
    let refused = run(&options, None).await.unwrap_err();
    assert!(refused.to_string().contains("redirect"), "{refused:?}");
}

#[tokio::test]
async fn a_sample_judges_the_chosen_accounts_and_states_its_confidence() {
    let sim = network(|spec| spec.accounts = 40);
    let mut options = options(&sim);
    (options.sample, options.seed) = (Some(10), 99);
    let (summary, verdicts) = run(&options, None).await.unwrap();
    let sample = summary.sample.clone().unwrap();
    assert_eq!((summary.population_count, summary.account_count, verdicts.len()), (40, 10, 10));
    assert_eq!((sample.decided_count, sample.wrong_count, sample.seed), (10, 0, 99));
    assert!((sample.wrong_at_most_percent - 25.887).abs() < 1e-3, "{sample:?}");
    // The same seed chooses the same accounts, and another one others.
    let again = run(&options, None).await.unwrap().1;
    assert!(again.keys().eq(verdicts.keys()));
    options.seed = 100;
    assert!(!run(&options, None).await.unwrap().1.keys().eq(verdicts.keys()));
}

#[tokio::test]
async fn a_sample_of_named_accounts_reads_their_blocks_alone() {
    let sim = network(|spec| spec.accounts = 40);
    let all = run(&options(&sim), None).await.unwrap().0;
    let mut options = options(&sim);
    options.dids = (0..40).map(|number| sim.account(number).did.parse().unwrap()).collect();
    (options.sample, options.seed) = (Some(3), 5);
    let (summary, verdicts) = run(&options, None).await.unwrap();
    assert_eq!((summary.population_count, verdicts.len(), summary.proved_count), (40, 3, 3));
    assert!(summary.block_count * 2 < all.block_count, "{summary:?}");
}

#[tokio::test]
async fn a_named_account_that_the_archive_leaves_out_has_a_verdict() {
    let sim = network(|_| ());
    sim.seal_archive(JETSTREAM);
    let number = sim.add_account();
    let mut options = options(&sim);
    let new = sim.account(number).did;
    options.dids = vec![new.parse().unwrap(), sim.account(0).did.parse().unwrap()];
    let (summary, verdicts) = run(&options, None).await.unwrap();
    assert_eq!((summary.proved_count, verdicts[&new].verdict), (1, Verdict::Newer));
    let records = sim.expected_accounts()[number].records.len() as u64;
    assert_eq!(verdicts[&new].differences.missing.count, records);
}

#[tokio::test]
async fn a_host_that_withholds_nodes_proves_nothing() {
    let sim = network(|_| ());
    sim.faults().enable(JETSTREAM, Fault::AlteredRecord, FaultSchedule::ONCE);
    sim.seal_archive(JETSTREAM);
    for number in 0..2 {
        let schedule = FaultSchedule::ALWAYS;
        sim.faults().enable(Server::Pds(number), Fault::WithheldBlock, schedule);
    }
    let (summary, verdicts) = run(&options(&sim), None).await.unwrap();
    assert_eq!((summary.wrong_count, summary.proved_count), (0, 0));
    assert!(
        verdicts.values().all(|verdict| code(verdict) == Some("car/roots")
            || code(verdict) == Some("commit/missing-block")),
        "{:?}",
        summary.unproved
    );
}

/// The CIDs of the present records of every account, from all rows of the segments.
fn records_by_brute_force(sim: &Simulation) -> BTreeMap<String, BTreeMap<String, Cid>> {
    let mut accounts: BTreeMap<String, BTreeMap<String, Cid>> = BTreeMap::new();
    for bytes in (0..).map_while(|number| sim.archive_segment(JETSTREAM, number)) {
        let segment = Segment::read(&bytes).unwrap();
        for block in (0..segment.blocks().len()).map(|number| segment.block(number).unwrap()) {
            for row in block.rows().map(Result::unwrap) {
                let records = accounts.entry(row.did.to_owned()).or_default();
                let path = format!("{}/{}", row.collection, row.rkey);
                match row.kind {
                    RowKind::Sync => records.clear(),
                    RowKind::Delete => drop(records.remove(&path)),
                    kind if kind.is_operation() => {
                        records.insert(path, Cid::of(Codec::DagCbor, row.payload));
                    }
                    _ => {}
                }
            }
        }
    }
    accounts
}

#[tokio::test]
async fn verdicts_and_differences_equal_brute_force_for_any_seed() {
    for seed in 1..=6 {
        let sim = network(|spec| (spec.seed, spec.records, spec.accounts) = (seed, 70, 14));
        for (fault, every) in
            [(Fault::ForgedRecord, 3), (Fault::AlteredRecord, 4), (Fault::WithheldRecord, 5)]
        {
            let schedule = FaultSchedule::ALWAYS.every(every).after(seed % every);
            sim.faults().enable(JETSTREAM, fault, schedule);
        }
        sim.seal_archive(JETSTREAM);
        let archived = records_by_brute_force(&sim);
        let (summary, verdicts) = run(&options(&sim), None).await.unwrap();
        let mut wrong = 0;
        for expected in sim.expected_accounts() {
            let (archived, signed) = (&archived[&expected.account.did], &expected.records);
            let names = |paths: Vec<&String>| paths.into_iter().cloned().collect::<Vec<String>>();
            let differing = |is: &dyn Fn(&String, &Cid) -> bool| {
                let found = archived.iter().filter(|(path, cid)| is(path, cid));
                names(found.map(|(path, _)| path).collect())
            };
            let unsigned = differing(&|path, _| !signed.contains_key(path));
            let altered = differing(&|path, cid| signed.get(path).is_some_and(|of| of != cid));
            let missing = signed.keys().filter(|path| !archived.contains_key(*path));
            let missing = names(missing.collect());
            let verdict = &verdicts[&expected.account.did];
            let Differences { unsigned: a, altered: b, missing: c, .. } = &verdict.differences;
            assert_eq!([&a.paths, &b.paths, &c.paths], [&unsigned, &altered, &missing], "{seed}");
            let is_equal = archived == signed;
            assert_eq!(verdict.verdict == Verdict::Proved, is_equal, "{verdict:?}");
            wrong += u64::from(!is_equal);
        }
        assert!(wrong > 0 && summary.wrong_count == wrong);
    }
}
