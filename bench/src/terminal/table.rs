//! The table of a task, and what a reader needs beside it.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};

use super::{Baseline, baseline, nostr, paint, speed, stages, wrap};
use crate::corpora::MIXED;
use crate::{Parity, Row, Unavailable};

/// Title, table, stages, legend and notes.
pub(super) fn of_task(task: &str, rows: &[&Row], chosen: Option<&Baseline>) -> String {
    let mut text = title(task, rows);
    let table = if nostr::is_task(task) { nostr::table } else { table };
    text += &format!("{}\n\n", table(task, rows, chosen));
    text += &stages::of_task(rows);
    text += &baselines(task, rows, chosen);
    text += &corpora_legend(rows);
    text += &checks_legend(task, rows);
    text + &notes(rows)
}

/// The peers that were not measured, each with the reason.
pub(super) fn unavailable(peers: &[Unavailable]) -> String {
    if peers.is_empty() {
        return String::new();
    }
    let line = |Unavailable { peer, reason }: &Unavailable| format!("  {peer}: {reason}\n");
    format!("not available\n{}", peers.iter().map(line).collect::<String>())
}

fn title(task: &str, rows: &[&Row]) -> String {
    let (bytes, passes) = (rows[0].bytes as f64 / 1e6, rows[0].passes_ns.len());
    let amounts = amounts(rows).join(", ");
    let title = format!("{task}: {amounts}, {bytes:.1} MB, {passes} passes, one core");
    paint::painted(paint::TITLE, &title) + "\n\n"
}

/// What a pass does, of each kind of unit; with what is in it where it is one whole thing.
fn amounts(rows: &[&Row]) -> Vec<String> {
    let amount = |row: &&Row| {
        let units = speed::amount(&row.unit, row.units);
        match row.counts.get("records").filter(|_| row.units == 1) {
            Some(records) => format!("{units} of {}", speed::amount("record", records)),
            None => units,
        }
    };
    let mut proved = rows.iter().filter(|row| row.parity == Parity::Ok).peekable();
    let mut amounts: Vec<String> = match proved.peek() {
        Some(_) => proved.map(amount).collect(),
        None => rows.iter().take(1).map(amount).collect(),
    };
    amounts.dedup();
    amounts
}

fn table(task: &str, rows: &[&Row], chosen: Option<&Baseline>) -> String {
    let (per_s, checks) = (speed::heading(rows), checks_of(task));
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["peer", "variant", &per_s, "min – max", "MB/s", "ratio", "checks", "parity"]);
    let mut styles = Vec::new();
    for group in groups(rows) {
        let against = baseline::of_group(group[0], rows, chosen).and_then(Row::median);
        if table.row_count() > 0 {
            table.add_row([""; 8]);
            styles.push(paint::PLAIN);
        }
        for (at, row) in group.iter().enumerate() {
            table.add_row(cells(row, against, &checks));
            // The fastest comes first, if any did the same work.
            let is_fastest = at == 0 && row.is_ranked();
            styles.push(if is_fastest { paint::FASTEST } else { paint::PLAIN });
        }
    }
    for column in 2..=5 {
        let column = table.column_mut(column).expect("eight columns");
        column.set_cell_alignment(CellAlignment::Right);
    }
    // How many bytes a second says little of signatures; nor do checks that nobody can leave out.
    let has_bytes = matches!(task, "decode" | "repo");
    for (column, is_hidden) in [(4, !has_bytes), (6, checks.is_empty())] {
        if is_hidden {
            let column = table.column_mut(column).expect("eight columns");
            column.set_constraint(ColumnConstraint::Hidden);
        }
    }
    paint::table(&table.trim_fmt(), &styles)
}

/// The rows of one kind, kind by kind.
pub(super) fn groups<'t, 'r>(rows: &'t [&'r Row]) -> impl Iterator<Item = &'t [&'r Row]> {
    rows.chunk_by(|a, b| a.group() == b.group())
}

fn cells(row: &Row, against: Option<f64>, checks: &Checks) -> [String; 8] {
    let none = || "–".to_owned();
    let speed = |text: &dyn Fn(crate::Rate) -> String| row.per_s.map_or_else(none, text);
    let ratio = row.median().zip(against).filter(|_| row.is_ranked());
    [
        row.peer.clone(),
        row.variant.clone(),
        speed(&|rate| speed::number(&row.unit, rate.median)),
        speed(&|rate| speed::range(&row.unit, rate)),
        row.mb_per_s.map_or_else(none, |speed| format!("{speed:.0}")),
        ratio.map_or_else(none, |(speed, against)| format!("{:.2}", speed / against)),
        check_codes(row, checks),
        parity(row),
    ]
}

pub(super) fn parity(row: &Row) -> String {
    match row.parity {
        Parity::Ok if row.per_s.is_none() => "ok, then failed".to_owned(),
        Parity::Ok if row.note.is_some() => "ok, some not given".to_owned(),
        Parity::Ok => "ok".to_owned(),
        Parity::Mismatch => MISMATCH.to_owned(),
        Parity::Unproven => "failed".to_owned(),
    }
}

/// Whether every event of a row could be held, and came back as it was.
pub(super) fn parity_of_sizes(row: &Row) -> &'static str {
    if row.parity == Parity::Ok { "ok" } else { MISMATCH }
}

/// One letter for each check that is made, a dot for each that is not.
pub(super) fn check_codes(row: &Row, checks: &Checks) -> String {
    let code = |(code, check): &(char, &str)| {
        if row.checks.iter().any(|made| made == check) { *code } else { '·' }
    };
    checks.iter().map(code).collect()
}

fn checks_legend(task: &str, rows: &[&Row]) -> String {
    let checks = checks_of(task);
    let known: Vec<_> = checks.iter().map(|(code, check)| format!("{code}{TIE}{check}")).collect();
    let mut legend = match &known[..] {
        [] => String::new(),
        known => wrap(&format!("checks: {}", known.join(", ")), INDENT).replace(TIE, " ") + "\n",
    };
    for row in rows {
        let is_known = |made: &&String| checks.iter().any(|(_, check)| check == made);
        let others: Vec<_> = row.checks.iter().filter(|made| !is_known(made)).cloned().collect();
        if !others.is_empty() {
            legend +=
                &format!("        {} {} also: {}\n", row.peer, row.variant, others.join(", "));
        }
    }
    legend
}

/// What a second corpus is.
fn corpora_legend(rows: &[&Row]) -> String {
    if rows.iter().any(|row| row.variant.ends_with(MIXED)) {
        format!("{MIXED}: commits by keys of both curves, one of ten accounts on P-256\n")
    } else {
        String::new()
    }
}

/// Which row each kind is held against.
fn baselines(task: &str, rows: &[&Row], chosen: Option<&Baseline>) -> String {
    if chosen.is_none() && nostr::is_task(task) {
        return wrap(&format!("ratio: {}", nostr::RATIO), INDENT) + "\n";
    }
    let mut lines = Vec::new();
    for group in groups(rows) {
        let name = group[0].group();
        if let Some(row) = baseline::of_group(group[0], rows, chosen) {
            lines.push(format!("{name} against {} {}", row.peer, row.variant));
        }
    }
    match (lines.is_empty(), chosen) {
        (false, _) => wrap(&format!("ratio: {}", lines.join(", ")), INDENT) + "\n",
        (true, Some(chosen)) => format!("ratio: none, {chosen} has no ranked row here\n"),
        (true, None) => {
            format!("ratio: none, {} a ranked row here\n", baseline::usual_peers(task))
        }
    }
}

/// Each different note of a peer once, with the variants it stands for.
fn notes(rows: &[&Row]) -> String {
    let mut notes: Vec<(&str, String, Vec<&str>)> = Vec::new();
    for row in rows {
        let Some(note) = &row.note else { continue };
        let is_mismatch = row.parity == Parity::Mismatch;
        let note = if is_mismatch { format!("{MISMATCH}: {note}") } else { note.clone() };
        match notes.iter_mut().find(|(peer, text, _)| *peer == row.peer && *text == note) {
            Some((_, _, variants)) => variants.push(&row.variant),
            None => notes.push((&row.peer, note, vec![&row.variant])),
        }
    }
    let line = |(peer, note, variants): &(&str, String, Vec<&str>)| {
        let text = format!("{peer} {}: {note}", variants.join(" and "));
        format!("  {}\n", paint::wrong_words(&wrap(&text, INDENT)))
    };
    if notes.is_empty() {
        return String::new();
    }
    format!("notes\n{}", notes.iter().map(line).collect::<String>())
}

const MISMATCH: &str = "**mismatch**";
/// Holds a letter and its check together on a line.
const TIE: char = '\u{a0}';
/// Columns under which a legend's later lines stand.
const INDENT: usize = 8;

/// Checks, each with its letter in the table.
pub(super) type Checks = Vec<(char, &'static str)>;

/// The checks that say something of a task, and whether a row makes them; `None` where none does.
pub(super) fn checks(task: &str, row: &Row) -> Option<Vec<(&'static str, bool)>> {
    let is_made = |check: &str| row.checks.iter().any(|made| made == check);
    let checks: Vec<_> =
        checks_of(task).into_iter().map(|(_, check)| (check, is_made(check))).collect();
    (!checks.is_empty()).then_some(checks)
}

/// The checks of the runner protocol that say something of a task.
pub(super) fn checks_of(task: &str) -> Checks {
    match task {
        "decode" => DECODE_CHECKS.to_vec(),
        "sigs" => SIGS_CHECKS.to_vec(),
        "repo" => [DECODE_CHECKS, REPO_CHECKS].concat(),
        "commit" => [DECODE_CHECKS, REPO_CHECKS, COMMIT_CHECKS].concat(),
        "nostr-deserialize" | "nostr-by-kind" | "nostr-by-category" | "nostr-batch" => {
            EVENT_CHECKS.to_vec()
        }
        "nostr-validated" => [EVENT_CHECKS, VALID_CHECKS].concat(),
        _ => Vec::new(),
    }
}

const DECODE_CHECKS: &[(char, &str)] = &[
    ('H', "cid-sha256"),
    ('O', "key-order"),
    ('D', "duplicate-keys"),
    ('M', "minimal-heads"),
    ('U', "utf8"),
    ('I', "indefinite-lengths"),
    ('F', "float-canonical"),
    ('T', "only-tag-42"),
    ('L', "link-shape"),
    ('E', "trailing-bytes"),
    ('B', "depth-bound"),
];
const SIGS_CHECKS: &[(char, &str)] = &[('S', "low-s"), ('C', "strict-cbor"), ('R', "raw-bytes")];
const REPO_CHECKS: &[(char, &str)] = &[
    ('s', "low-s"),
    ('o', "mst-order"),
    ('l', "mst-layer"),
    ('p', "mst-prefix"),
    ('e', "mst-shape"),
    ('1', "mst-once"),
    ('c', "complete"),
    ('r', "record-path"),
    ('v', "record-cbor"),
];
const COMMIT_CHECKS: &[(char, &str)] = &[
    ('f', "event-fields"),
    ('u', "op-records"),
    ('i', "inversion"),
    ('h', "chain"),
    ('t', "clock"),
];
const EVENT_CHECKS: &[(char, &str)] = &[
    ('U', "utf8"),
    ('E', "trailing-bytes"),
    ('X', "hex-lower"),
    ('K', "kind-range"),
    ('D', "duplicate-fields"),
    ('M', "minimal-heads"),
    ('L', "limits"),
];
const VALID_CHECKS: &[(char, &str)] = &[('i', "id"), ('s', "signature")];
