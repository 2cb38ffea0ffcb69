//! The terminal report of fixed results.

use super::*;
use crate::{
    CaseOutcome, CorpusInfo, Counts, Expect, Machine, Outcome, Parity, Rate, SCHEMA, Task,
    Unavailable,
};

fn row(peer: &str, variant: &str, checks: &[&str], ms: &[u64]) -> Row {
    let passes_ns: Vec<u64> = ms.iter().map(|ms| ms * 1_000_000).collect();
    let per_s = Rate::of(3_298, &passes_ns);
    Row {
        version: "1.2.3".to_owned(),
        checks: checks.iter().map(|check| (*check).to_owned()).collect(),
        units: 3_298,
        bytes: 16_200_000,
        passes_ns,
        per_s,
        mb_per_s: per_s.map(|rate| rate.median * 16.2 / 3_298.0),
        counts: [("frames", 3_298)].into_iter().collect::<Counts>(),
        parity: Parity::Ok,
        ..Row::new(Task::Decode, variant, peer)
    }
}

pub(super) fn results() -> Results {
    let mut rows = vec![
        row("go-indigo", "verified", &["cid-sha256", "duplicate-keys"], &[210, 200, 220]),
        row("wireproof", "unverified/arena-reuse", &["key-order", "utf8"], &[3, 3, 4]),
        row("wireproof", "verified/arena-reuse", &["cid-sha256", "key-order", "utf8"], &[6, 7, 8]),
        row("rust-raw", "unverified/arena-reuse", &["utf8", "own-check"], &[8, 8, 8]),
        Row {
            parity: Parity::Mismatch,
            note: Some("links 6 instead of 7".to_owned()),
            ..row("rust-rsky", "verified", &["cid-sha256"], &[1, 1, 1])
        },
        Row {
            per_s: None,
            mb_per_s: None,
            note: Some("pass: no answer within 120 s".to_owned()),
            ..row("rust-shrike", "verified", &["cid-sha256"], &[20])
        },
        Row {
            note: Some("not given: links".to_owned()),
            ..row("python-atproto", "unverified", &["utf8"], &[30, 31, 32])
        },
    ];
    sort(&mut rows);
    Results {
        schema: SCHEMA.to_owned(),
        started: "2026-11-20T17:00:00Z".to_owned(),
        machine: Machine {
            cpu: "A processor".to_owned(),
            cores: 2,
            virtual_machine: None,
            memory_bytes: None,
            memory_limit_bytes: None,
            cpu_limit: None,
            features: vec!["sha_ni".to_owned()],
            os: "linux 6.1 x86_64".to_owned(),
            toolchains: [("go".to_owned(), "go version go1.26".to_owned())].into(),
        },
        settings: None,
        corpora: vec![CorpusInfo {
            name: "frames".to_owned(),
            sha256: "00ff".to_owned(),
            bytes: 16_213_196,
            units: 3_298,
        }],
        rows,
        unavailable: vec![Unavailable {
            peer: "ts-atcute".to_owned(),
            reason: "node is not installed".to_owned(),
        }],
    }
}

#[test]
fn the_report_shows_every_row_and_ranks_equal_work() {
    insta::assert_snapshot!(text(&results(), None), @r#"
    decode: 3,298 frames, 16.2 MB, 3 passes, one core

     peer            variant                  frames/s              min – max   MB/s  ratio              checks       parity
     wireproof       verified/arena-reuse      471,143      412,250 – 549,667   2314  30.00 × go-indigo  HO··U······  ok
     go-indigo       verified                   15,705        14,991 – 16,490     77   1.00 × go-indigo  H·D········  ok
     rust-rsky       verified                3,298,000  3,298,000 – 3,298,000  16200      –              H··········  **mismatch**
     rust-shrike     verified                        –                      –      –      –              H··········  ok, then failed

     wireproof       unverified/arena-reuse  1,099,333    824,500 – 1,099,333   5400   2.67 × rust-raw   ·O··U······  ok
     rust-raw        unverified/arena-reuse    412,250      412,250 – 412,250   2025   1.00 × rust-raw   ····U······  ok
     python-atproto  unverified                106,387      103,062 – 109,933    523   0.26 × rust-raw   ····U······  ok, some not given

    ratio: N × NAME is N times as fast as NAME; verified against go-indigo verified, unverified against
            rust-raw unverified/arena-reuse
    names: arena-reuse: memory kept
    checks: H cid-sha256, O key-order, D duplicate-keys, M minimal-heads, U utf8, I indefinite-lengths,
            F float-canonical, T only-tag-42, L link-shape, E trailing-bytes, B depth-bound
            rust-raw unverified/arena-reuse also: own-check
    notes
      rust-rsky verified: **mismatch**: links 6 instead of 7
      rust-shrike verified: pass: no answer within 120 s
      python-atproto unverified: not given: links

    Every hash checked, batches included, the fastest is wireproof (verified/arena-reuse) with 471,143
    frames/s (412,250 – 549,667), 30.00 × go-indigo (verified), the next. wireproof makes 3 of 11
    checks, go-indigo makes 2 of 11 checks. One frame at a time, the fastest is wireproof
    (verified/arena-reuse) with 471,143 frames/s (412,250 – 549,667), 30.00 × go-indigo (verified), the
    next. Hashes trusted, batches included, the fastest is wireproof (unverified/arena-reuse) with
    1,099,333 frames/s (824,500 – 1,099,333), 2.67 × rust-raw (unverified/arena-reuse), the next. Hashes
    trusted, one frame at a time, the fastest is wireproof (unverified/arena-reuse) with 1,099,333
    frames/s (824,500 – 1,099,333), 2.67 × rust-raw (unverified/arena-reuse), the next. 6 of 7 rows
    proved equal work, by their counts of frames; 2 not ranked. The least even row is wireproof
    (unverified/arena-reuse): its fastest pass is 33 % faster than its slowest.

    not available
      ts-atcute: node is not installed
    "#);
}

#[test]
fn ratios_refer_to_the_chosen_baseline() {
    let against = |baseline: &str| {
        let report = text(&results(), Some(&baseline.parse().unwrap()));
        let (_, from_ratio) = report.split_once("\nratio: ").unwrap();
        let (ratio, _) = from_ratio.split_once("\nnames").unwrap();
        let ratio = ratio.split_whitespace().collect::<Vec<_>>().join(" ");
        ratio.trim_start_matches("N × NAME is N times as fast as NAME; ").to_owned()
    };
    assert_eq!(
        against("wireproof"),
        "verified against wireproof verified/arena-reuse, \
         unverified against wireproof unverified/arena-reuse"
    );
    assert_eq!(
        against("go-indigo/verified"),
        "verified against go-indigo verified, unverified against go-indigo verified"
    );
    assert_eq!(against("rust-rsky"), "none, rust-rsky has no ranked row here");
}

/// The rows that ratios of trees refer to, by default and where rust-shrike is chosen.
#[test]
fn lookups_in_an_index_refer_to_plain_ones_and_mixed_operations_to_mixed_ones() {
    let variants = ["bulk", "insert-root/ascending", "lookup", "lookup/indexed", "mixed"];
    let peers = ["go-indigo", "rust-shrike", "wireproof"];
    let of_peer = |peer| {
        variants.map(|variant| Row { task: "mst".to_owned(), ..row(peer, variant, &[], &[1]) })
    };
    let mut results = Results { rows: peers.into_iter().flat_map(of_peer).collect(), ..results() };
    super::sort(&mut results.rows);
    let rows: Vec<&Row> = results.rows.iter().collect();
    let chosen = "rust-shrike".parse().unwrap();
    for (peer, chosen) in [("go-indigo", None), ("rust-shrike", Some(&chosen))] {
        let against = |variant| {
            let ours = rows.iter().find(|row| row.peer == "wireproof" && row.variant == variant);
            let against = super::baseline_row(ours.unwrap(), &rows, chosen).unwrap();
            assert_eq!(against.peer, peer, "{variant}");
            against.variant.as_str()
        };
        let expected =
            ["insert-root/ascending", "insert-root/ascending", "lookup", "lookup", "mixed"];
        assert_eq!(variants.map(against), expected);
    }
}

#[test]
fn the_document_has_the_form_of_its_schema() {
    let results = Results { rows: vec![results().rows[0].clone()], ..results() };
    insta::assert_snapshot!(serde_json::to_string_pretty(&results).unwrap(), @r#"
    {
      "schema": "wireproof-bench/1",
      "started": "2026-11-20T17:00:00Z",
      "machine": {
        "cpu": "A processor",
        "cores": 2,
        "features": [
          "sha_ni"
        ],
        "os": "linux 6.1 x86_64",
        "toolchains": {
          "go": "go version go1.26"
        }
      },
      "corpora": [
        {
          "name": "frames",
          "sha256": "00ff",
          "bytes": 16213196,
          "units": 3298
        }
      ],
      "rows": [
        {
          "task": "decode",
          "variant": "verified/arena-reuse",
          "peer": "wireproof",
          "language": "rust",
          "version": "1.2.3",
          "checks": [
            "cid-sha256",
            "key-order",
            "utf8"
          ],
          "unit": "frame",
          "units": 3298,
          "bytes": 16200000,
          "passes_ns": [
            6000000,
            7000000,
            8000000
          ],
          "per_s": {
            "min": 412250.0,
            "median": 471142.85714285716,
            "max": 549666.6666666666
          },
          "mb_per_s": 2314.285714285714,
          "counts": {
            "frames": 3298
          },
          "parity": "ok",
          "note": null
        }
      ],
      "unavailable": [
        {
          "peer": "ts-atcute",
          "reason": "node is not installed"
        }
      ]
    }
    "#);
}

#[test]
fn the_document_can_be_read_back() {
    // Rates have more digits than JSON preserves.
    let mut results = results();
    for row in &mut results.rows {
        (row.per_s, row.mb_per_s) = (None, None);
    }
    let json = serde_json::to_string(&results).unwrap();
    assert_eq!(serde_json::from_str::<Results>(&json).unwrap(), results);
}

#[test]
fn digits_are_grouped_by_three() {
    assert_eq!(thousands(0.4), "0");
    assert_eq!(thousands(999.0), "999");
    assert_eq!(thousands(1_234_567.0), "1,234,567");
}

fn signature_row(task: &str, variant: &str, peer: &str, checks: &[&str], ms: u64) -> Row {
    let unit = if task == "sigs" { "commit" } else { "event" };
    let row = row(peer, variant, checks, &[ms, ms]);
    Row { task: task.to_owned(), unit: unit.to_owned(), ..row }
}

#[test]
fn batches_of_signatures_are_ranked_with_single_ones() {
    let ours = ["low-s", "strict-cbor", "raw-bytes"];
    let mut rows = vec![
        signature_row("schnorr", "verify/batch", "wireproof", &[], 10),
        signature_row("schnorr", "verify", "rust-libsecp256k1", &[], 80),
        signature_row("sigs", "full@mixed", "rust-libsecp256k1", &["low-s", "raw-bytes"], 90),
        signature_row("sigs", "full/batch@mixed", "wireproof", &ours, 20),
        signature_row("sigs", "preparsed", "wireproof", &["low-s"], 70),
        signature_row("sigs", "full", "rust-libsecp256k1", &["low-s", "raw-bytes"], 80),
        signature_row("sigs", "full/batch", "wireproof", &ours, 10),
        signature_row("sigs", "full", "wireproof", &ours, 75),
    ];
    sort(&mut rows);
    let results = Results { rows, ..results() };
    insta::assert_snapshot!(text(&results, None), @r#"
    sigs: 3,298 commits, 16.2 MB, 2 passes, one core

     peer               variant           commits/s          min – max  ratio                      checks  parity
     wireproof          full/batch          329,800  329,800 – 329,800   8.00 × rust-libsecp256k1  SCR     ok
     wireproof          full                 43,973    43,973 – 43,973   1.07 × rust-libsecp256k1  SCR     ok
     rust-libsecp256k1  full                 41,225    41,225 – 41,225   1.00 × rust-libsecp256k1  S·R     ok

     wireproof          preparsed            47,114    47,114 – 47,114      –                      S··     ok

     wireproof          full/batch@mixed    164,900  164,900 – 164,900   4.50 × rust-libsecp256k1  SCR     ok
     rust-libsecp256k1  full@mixed           36,644    36,644 – 36,644   1.00 × rust-libsecp256k1  S·R     ok

    ratio: N × NAME is N times as fast as NAME; full against rust-libsecp256k1 full, full@mixed against
            rust-libsecp256k1 full@mixed
    names: @mixed: keys of both curves, a tenth on P-256; batch: 256 at a time, in lanes
    checks: S low-s, C strict-cbor, R raw-bytes

    From the commits' bytes, batches included, the fastest is wireproof (full/batch) with 329,800
    commits/s (329,800 – 329,800), 8.00 × rust-libsecp256k1 (full), the next. wireproof makes every
    check, rust-libsecp256k1 leaves out strict-cbor. One commit at a time, the fastest is wireproof
    (full) with 43,973 commits/s (43,973 – 43,973), 1.07 × rust-libsecp256k1 (full), the next. With
    messages and parsed keys given, the fastest is wireproof (preparsed) with 47,114 commits/s
    (47,114 – 47,114). With both curves, the fastest is wireproof (full/batch@mixed) with 164,900
    commits/s (164,900 – 164,900), 4.50 × rust-libsecp256k1 (full@mixed), the next. 6 of 6 rows proved
    equal work, by their counts of frames.

    schnorr: 3,298 events, 16.2 MB, 2 passes, one core

     peer               variant       events/s          min – max  ratio                      parity
     wireproof          verify/batch   329,800  329,800 – 329,800   8.00 × rust-libsecp256k1  ok
     rust-libsecp256k1  verify          41,225    41,225 – 41,225   1.00 × rust-libsecp256k1  ok

    ratio: N × NAME is N times as fast as NAME; verify against rust-libsecp256k1 verify
    names: batch: 256 at a time, in lanes

    Batches included, the fastest is wireproof (verify/batch) with 329,800 events/s (329,800 – 329,800),
    8.00 × rust-libsecp256k1 (verify), the next. One event at a time, the fastest is rust-libsecp256k1
    (verify) with 41,225 events/s (41,225 – 41,225). 2 of 2 rows proved equal work, by their counts of
    frames.

    not available
      ts-atcute: node is not installed
    "#);
}

fn mst_row(variant: &str, peer: &str, ms: u64) -> Row {
    let (unit, units) = if variant == "lookup" { ("lookup", 500_000) } else { ("record", 50_000) };
    let row = row(peer, variant, &[], &[ms, ms]);
    let per_s = Rate::of(units, &row.passes_ns);
    Row { task: "mst".to_owned(), unit: unit.to_owned(), units, bytes: 3_600_000, per_s, ..row }
}

#[test]
fn rows_of_trees_are_ranked_by_operation() {
    let mut rows = vec![
        mst_row("lookup", "wireproof", 60),
        mst_row("lookup", "go-indigo", 150),
        mst_row("bulk", "wireproof", 4),
        mst_row("insert-root/shuffled", "wireproof", 20),
        mst_row("insert-root/shuffled", "go-indigo", 80),
        mst_row("insert-root/ascending", "go-indigo", 40),
        mst_row("insert-root/ascending", "wireproof", 10),
    ];
    sort(&mut rows);
    let results = Results { rows, unavailable: Vec::new(), ..results() };
    insta::assert_snapshot!(text(&results, None), @r#"
    mst: 50,000 records, 500,000 lookups, 3.6 MB, 2 passes, one core

     peer       variant                per second                min – max  ratio                                    parity
     wireproof  insert-root/ascending   5,000,000    5,000,000 – 5,000,000   4.00 × go-indigo                        ok
     go-indigo  insert-root/ascending   1,250,000    1,250,000 – 1,250,000   1.00 × go-indigo                        ok

     wireproof  insert-root/shuffled    2,500,000    2,500,000 – 2,500,000   4.00 × go-indigo                        ok
     go-indigo  insert-root/shuffled      625,000        625,000 – 625,000   1.00 × go-indigo                        ok

     wireproof  bulk                   12,500,000  12,500,000 – 12,500,000  10.00 × go-indigo insert-root/ascending  ok

     wireproof  lookup                  8,333,333    8,333,333 – 8,333,333   2.50 × go-indigo                        ok
     go-indigo  lookup                  3,333,333    3,333,333 – 3,333,333   1.00 × go-indigo                        ok

    ratio: N × NAME is N times as fast as NAME; insert-root/ascending against go-indigo
            insert-root/ascending, insert-root/shuffled against go-indigo insert-root/shuffled, bulk
            against go-indigo insert-root/ascending, lookup against go-indigo lookup
    names: ascending: in key order; bulk: from a list in key order; shuffled: in any order

    Inserting in the order of the keys, the fastest is wireproof (insert-root/ascending) with 5,000,000
    records/s (5,000,000 – 5,000,000), 4.00 × go-indigo (insert-root/ascending), the next. Inserting in
    any order, the fastest is wireproof (insert-root/shuffled) with 2,500,000 records/s
    (2,500,000 – 2,500,000), 4.00 × go-indigo (insert-root/shuffled), the next. Building from all
    records at once, the fastest is wireproof (bulk) with 12,500,000 records/s
    (12,500,000 – 12,500,000), 10.00 × go-indigo (insert-root/ascending). Looking up, the fastest is
    wireproof (lookup) with 8,333,333 lookups/s (8,333,333 – 8,333,333), 2.50 × go-indigo (lookup), the
    next. 7 of 7 rows proved equal work, by their counts of frames.
    "#);
}

fn repo_row(variant: &str, peer: &str, checks: &[&str], stages: &[(&str, u64)]) -> Row {
    let ms: u64 = stages.iter().map(|(_, ms)| ms).sum();
    let row = row(peer, variant, checks, &[ms + 2, ms, ms + 1]);
    let passes_of = |ms: u64| [ms, ms, ms + 1].map(|ms| ms * 1_000_000).to_vec();
    let stages_ns = stages.iter().map(|(name, ms)| ((*name).to_owned(), passes_of(*ms))).collect();
    let per_s = Rate::of(1, &row.passes_ns);
    Row {
        task: "repo".to_owned(),
        unit: "repository".to_owned(),
        units: 1,
        bytes: 70_600_000,
        per_s,
        mb_per_s: per_s.map(|rate| rate.median * 70.6),
        stages_ns,
        counts: [("records", 192_000)].into_iter().collect(),
        ..row
    }
}

#[test]
fn a_repository_is_shown_in_milliseconds_with_its_stages() {
    let all = ["cid-sha256", "low-s", "mst-order", "mst-once", "complete"];
    let mut rows = vec![
        repo_row("total", "rust-rsky", &["cid-sha256"], &[("parse", 180), ("signature", 240)]),
        repo_row(
            "total/rebuild",
            "wireproof",
            &all,
            &[("parse", 30), ("walk", 12), ("rebuild", 9)],
        ),
        repo_row(
            "total",
            "go-indigo",
            &all[..3],
            &[("parse", 200), ("signature", 1), ("walk", 209)],
        ),
        repo_row("total", "wireproof", &all, &[("parse", 30), ("signature", 0), ("walk", 12)]),
    ];
    sort(&mut rows);
    let results = Results { rows, unavailable: Vec::new(), ..results() };
    insta::assert_snapshot!(text(&results, None), @r#"
    repo: 1 repository of 192,000 records, 70.6 MB, 3 passes, one core

     peer       variant           ms      min – max  MB/s  ratio              checks                parity
     wireproof  total           43.0    42.0 – 44.0  1642   9.56 × go-indigo  H··········so···1c··  ok
     go-indigo  total          411.0  410.0 – 412.0   172   1.00 × go-indigo  H··········so·······  ok
     rust-rsky  total          421.0  420.0 – 422.0   168   0.98 × go-indigo  H···················  ok

     wireproof  total/rebuild   52.0    51.0 – 53.0  1358      –              H··········so···1c··  ok

     peer       variant        parse ms  signature ms  walk ms  rebuild ms
     wireproof  total              30.0          0.00     12.0           –
     go-indigo  total             200.0          1.00    209.0           –
     rust-rsky  total             180.0         240.0        –           –
     wireproof  total/rebuild      30.0             –     12.0        9.00

    stages: median of each; one that a peer cannot tell apart is in the one before it
    ratio: N × NAME is N times as fast as NAME; total against go-indigo total
    checks: H cid-sha256, O key-order, D duplicate-keys, M minimal-heads, U utf8, I indefinite-lengths,
            F float-canonical, T only-tag-42, L link-shape, E trailing-bytes, B depth-bound, s low-s,
            o mst-order, l mst-layer, p mst-prefix, e mst-shape, 1 mst-once, c complete, r record-path,
            v record-cbor

    Verifying a whole repository, the fastest is wireproof (total) with 43.0 ms (42.0 – 44.0),
    9.56 × go-indigo (total), the next. wireproof makes 5 of 20 checks, go-indigo makes 3 of 20 checks.
    With its tree rebuilt, the fastest is wireproof (total/rebuild) with 52.0 ms (51.0 – 53.0). 4 of 4
    rows proved equal work, by their counts of records. The least even row is wireproof (total): its
    fastest pass is 5 % faster than its slowest.
    "#);
}

fn hostile_row(peer: &str, variant: &str, outcomes: &[(&str, Expect, Outcome)]) -> Row {
    let case = |(name, expect, outcome): &(&str, Expect, Outcome)| CaseOutcome {
        name: (*name).to_owned(),
        expect: *expect,
        outcome: *outcome,
        reason: Some("no reason".to_owned()),
    };
    let of_invalid = |wanted: Outcome| {
        outcomes.iter().filter(|case| case.1 == Expect::Refuse && case.2 == wanted).count() as u64
    };
    let refused =
        outcomes.iter().map(case).filter(|case| case.expect != Expect::Refuse && !case.is_right());
    let counts = [
        ("accepted", of_invalid(Outcome::Accepted)),
        ("refused", of_invalid(Outcome::Refused)),
        ("crashed", of_invalid(Outcome::Crashed)),
        ("hung", of_invalid(Outcome::Hung)),
    ];
    Row {
        task: "hostile".to_owned(),
        unit: "case".to_owned(),
        units: outcomes.len() as u64,
        counts: counts.into_iter().collect(),
        valid_refused: Some(refused.count() as u64),
        cases: outcomes.iter().map(case).collect(),
        ..row(peer, variant, &[], &[])
    }
}

#[test]
fn the_hostile_matrix_shows_wrong_outcomes_and_their_sums() {
    use Expect::{Accept, InvalidRecord, Refuse};
    use Outcome::{Accepted, Crashed, Hung, Refused};
    let ours = [
        ("plain", Accept, Accepted),
        ("unsorted", InvalidRecord, Accepted),
        ("no-bytes", InvalidRecord, Accepted),
        ("empty-key", Refuse, Refused),
        ("loop", Refuse, Refused),
    ];
    let theirs = [
        ("plain", Accept, Refused),
        ("unsorted", InvalidRecord, Refused),
        ("no-bytes", InvalidRecord, Crashed),
        ("empty-key", Refuse, Crashed),
        ("loop", Refuse, Hung),
    ];
    let mut rows = vec![
        hostile_row("go-indigo", "repo", &theirs),
        hostile_row("go-indigo", "frames", &[("old-rev", Refuse, Accepted)]),
        hostile_row("rust-rsky", "repo", &ours),
        hostile_row("wireproof", "repo", &ours),
        hostile_row("wireproof", "frames", &[("old-rev", Refuse, Refused)]),
    ];
    sort(&mut rows);
    let results = Results { rows, unavailable: Vec::new(), ..results() };
    insta::assert_snapshot!(text(&results, None), @r#"
    hostile: 6 cases, 3 of them valid, each in a process of its own

     case       must    wireproof  go-indigo    rust-rsky
     plain      accept  accepts    **refuses**  accepts
     unsorted   either  accepts    refuses      accepts
     no-bytes   either  accepts    **crashes**  accepts
     empty-key  refuse  refuses    **crashes**  refuses
     loop       refuse  refuses    **hangs**    refuses
     old-rev    refuse  refuses    **accepts**  –

     peer       path    invalid  refused  accepted  crashed  hung  valid  not accepted
     go-indigo  repo          2        0         0        1     1      3             2
     rust-rsky  repo          2        2         0        0     0      3             0
     wireproof  repo          2        2         0        0     0      3             0
     go-indigo  frames        1        0         1        0     0      0             0
     wireproof  frames        1        1         0        0     0      0             0

    –: the peer has no such path
    either: a valid repository or event with an invalid record, which a strict verifier may refuse
    the peers' reasons are in results.json

    wireproof, rust-rsky: right on every case. go-indigo accepts 1 of 3 invalid cases, crashes on 1,
    hangs on 1, does not accept 2 valid ones.
    "#);
}
