//! The table of a task, its legend and notes.

use protocol::checks::{self, Check};

use super::baseline::{self, Baseline};
use super::order::{STAGES, position};
use super::ratio;
use super::speed::{self, milliseconds, thousands};
use super::style::{FASTEST, Grid, PLAIN, TITLE, mark_wrong, styled, wrap};
use crate::{Parity, Rate, Row, Unavailable, variant};

/// Title, table, stages, legend and notes.
pub(super) fn of_task(task: &str, rows: &[&Row], chosen: Option<&Baseline>) -> String {
    let layout = if is_nostr(task) { nostr_layout(task, rows) } else { layout(task, rows) };
    let mut text = title(task, rows) + &format!("{}\n\n", table(layout, rows, chosen));
    text += &stages(rows);
    text += &baselines(task, rows, chosen);
    text += &names_legend(task, rows);
    text += &checks_legend(task, rows);
    text + &notes(rows)
}

/// Whether the rows of a task are shown in nanoseconds per event, the usual unit for comparing formats.
pub(super) fn is_nostr(task: &str) -> bool {
    task.starts_with("nostr-") && task != "nostr-size"
}

/// Peers that have no rows, grouped by reason.
pub(super) fn unavailable(title: &str, peers: &[Unavailable]) -> String {
    let mut by_reason: Vec<(String, Vec<&str>)> = Vec::new();
    for peer in peers {
        let reason = reason(peer);
        match by_reason.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, peers)) => peers.push(&peer.peer),
            None => by_reason.push((reason, vec![&peer.peer])),
        }
    }
    let entry = |(reason, peers): &(String, Vec<&str>)| format!("{}: {reason}", peers.join(", "));
    let entries = by_reason.iter().map(|of_reason| format!("  {}\n", wrap(&entry(of_reason), 2)));
    if peers.is_empty() {
        String::new()
    } else {
        format!("{title}\n{}", entries.collect::<String>())
    }
}

/// The plain reason, with the place of the whole one if that says more.
fn reason(peer: &Unavailable) -> String {
    let plain = peer.plain_reason();
    if plain == peer.reason { plain } else { format!("{plain}; results.json has the error") }
}

fn title(task: &str, rows: &[&Row]) -> String {
    let bytes = rows[0].bytes as f64 / 1e6;
    let passes = rows.iter().map(|row| row.passes_ns.len()).max().unwrap_or_default();
    let amounts = amounts(rows).join(", ");
    let title = format!("{task}: {amounts}, {bytes:.1} MB, {passes} passes, one core");
    styled(TITLE, &title) + "\n\n"
}

/// The amounts of units in a pass, by kind; with the number of records if the unit is one whole repository.
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

/// Formats the cells of a row, given its baseline.
type Cells = dyn Fn(&Row, Option<&Row>) -> Vec<String>;

/// The columns of a table.
struct Layout {
    headings: Vec<String>,
    cells: Box<Cells>,
    /// The last column of numbers; they begin at 2.
    last_number: usize,
    hidden: Vec<usize>,
    /// Whether groups of a single row follow each other without a gap.
    is_dense: bool,
}

fn layout(task: &str, rows: &[&Row]) -> Layout {
    let (per_s, checks) = (speed::heading(rows), checks::of_task(task));
    let headings = ["peer", "variant", &per_s, "min – max", "MB/s", "ratio", "checks", "parity"];
    // Bytes per second are not meaningful for signatures.
    let has_bytes = matches!(task, "decode" | "repo");
    let hidden = [(4, !has_bytes), (6, checks.is_empty())];
    let cells = move |row: &Row, baseline: Option<&Row>| {
        let speed = |text: &dyn Fn(Rate) -> String| row.per_s.map_or_else(none, text);
        vec![
            row.peer.clone(),
            row.variant.clone(),
            speed(&|rate| speed::number(&row.unit, rate.median)),
            speed(&|rate| speed::range(&row.unit, rate)),
            row.mb_per_s.map_or_else(none, |speed| format!("{speed:.0}")),
            ratio_to(row, baseline),
            check_letters(row, &checks),
            parity(row),
        ]
    };
    Layout {
        headings: headings.map(str::to_owned).into(),
        cells: Box::new(cells),
        last_number: 4,
        hidden: hidden.into_iter().filter(|(_, hide)| *hide).map(|(column, _)| column).collect(),
        is_dense: false,
    }
}

fn nostr_layout(task: &str, rows: &[&Row]) -> Layout {
    let checks = checks::of_task(task);
    let (times, rest) = (["ns/event", "min – max", "p99"], ["ratio", "checks", "parity"]);
    let headings = ["peer", "variant"].into_iter().chain(times).chain(["allocations"]).chain(rest);
    let has_chunks = rows.iter().any(|row| row.chunks.is_some());
    let has_allocations = rows.iter().any(|row| row.allocations.is_some());
    let hidden = [(4, !has_chunks), (5, !has_allocations), (7, checks.is_empty())];
    let cells = move |row: &Row, baseline: Option<&Row>| {
        let time = |text: &dyn Fn(Rate) -> String| row.per_s.map_or_else(none, text);
        vec![
            row.peer.clone(),
            row.variant.clone(),
            time(&|rate| nanoseconds(rate.median)),
            time(&|rate| format!("{} – {}", nanoseconds(rate.max), nanoseconds(rate.min))),
            row.chunks.map_or_else(none, |chunks| thousands(chunks.p99_ns)),
            row.allocations.map_or_else(none, |count| format!("{count:.1}")),
            ratio_to(row, baseline),
            check_letters(row, &checks),
            parity(row),
        ]
    };
    Layout {
        headings: headings.map(str::to_owned).collect(),
        cells: Box::new(cells),
        last_number: 5,
        hidden: hidden.into_iter().filter(|(_, hide)| *hide).map(|(column, _)| column).collect(),
        is_dense: true,
    }
}

/// The rows by group, with a gap between groups.
fn table(layout: Layout, rows: &[&Row], chosen: Option<&Baseline>) -> String {
    let mut grid = Grid::new(&layout.headings);
    let mut was_single = false;
    for group in groups(rows) {
        let is_single = layout.is_dense && group.len() == 1;
        if !(grid.is_empty() || is_single && was_single) {
            grid.row(PLAIN, layout.headings.iter().map(|_| ""));
        }
        was_single = is_single;
        let baseline = baseline::of_group(group[0], rows, chosen);
        for (at, row) in group.iter().enumerate() {
            // The fastest comes first, if any row has equal work.
            let is_fastest = at == 0 && row.is_ranked();
            let style = if is_fastest { FASTEST } else { PLAIN };
            grid.row(style, (layout.cells)(row, baseline));
        }
    }
    grid.align_right(2..=layout.last_number);
    layout.hidden.iter().for_each(|column| grid.hide(*column));
    grid.render()
}

fn none() -> String {
    "–".to_owned()
}

/// The rows by group.
pub(super) fn groups<'t, 'r>(rows: &'t [&'r Row]) -> impl Iterator<Item = &'t [&'r Row]> {
    rows.chunk_by(|a, b| a.group() == b.group())
}

/// The ratio with the name of the baseline; numbers end under each other.
fn ratio_to(row: &Row, baseline: Option<&Row>) -> String {
    let ratio = |other: &Row| {
        let number = format!("{:>5.2}", row.median()? / other.median()?);
        Some(ratio::named(&number, row, other))
    };
    let known = baseline.filter(|_| row.is_ranked()).and_then(ratio);
    known.unwrap_or_else(|| format!("{:>5}", none()))
}

/// Nanoseconds per unit.
pub(super) fn nanoseconds(per_s: f64) -> String {
    let ns = 1e9 / per_s;
    if ns < 100.0 { format!("{ns:.1}") } else { thousands(ns) }
}

fn parity(row: &Row) -> String {
    match row.parity {
        Parity::Ok if row.per_s.is_none() => "ok, then failed".to_owned(),
        Parity::Ok if row.unheld > 0 => without(row),
        Parity::Ok if row.note.is_some() => "ok, some not given".to_owned(),
        Parity::Ok => "ok".to_owned(),
        Parity::Mismatch => MISMATCH.to_owned(),
        Parity::Unproven => "failed".to_owned(),
    }
}

/// The parity of a row without the events that its format cannot hold.
fn without(row: &Row) -> String {
    format!("ok, without {}", row.unheld)
}

/// The parity of a row of sizes: every event in the sums was equal after a round trip.
pub(super) fn parity_of_sizes(row: &Row) -> String {
    match row.parity {
        Parity::Ok if row.unheld > 0 => without(row),
        Parity::Ok => "ok".to_owned(),
        _ => MISMATCH.to_owned(),
    }
}

/// The letters of the checks that are made, a dot for every check that is not.
fn check_letters(row: &Row, checks: &[Check]) -> String {
    let letter = |(letter, check): &Check| {
        if row.checks.iter().any(|made| made == check) { *letter } else { '·' }
    };
    checks.iter().map(letter).collect()
}

/// A table of the stages' median times, in milliseconds, or in microseconds for Nostr events; empty without stages.
fn stages(rows: &[&Row]) -> String {
    let staged: Vec<&&Row> = rows.iter().filter(|row| !row.stages_ns.is_empty()).collect();
    if staged.is_empty() {
        return String::new();
    }
    let mut names: Vec<&str> =
        staged.iter().flat_map(|row| row.stages_ns.keys()).map(String::as_str).collect();
    names.sort_by_key(|name| position(name, &STAGES));
    names.dedup();
    let is_short = is_nostr(&staged[0].task);
    let unit = if is_short { "µs" } else { "ms" };
    let headings = names.iter().map(|name| format!("{name} {unit}"));
    let mut grid = Grid::new(["peer", "variant"].map(str::to_owned).into_iter().chain(headings));
    for row in staged {
        let times = names.iter().map(|name| match row.stages_ns.get(*name) {
            Some(passes_ns) if is_short => format!("{:.1}", median(passes_ns) / 1e3),
            Some(passes_ns) => milliseconds(median(passes_ns)),
            None => none(),
        });
        grid.row(PLAIN, [row.peer.clone(), row.variant.clone()].into_iter().chain(times));
    }
    grid.align_right(2..=1 + names.len());
    format!("{}\n\n{STAGES_LEGEND}", grid.render())
}

/// The median; the midpoint of the two middle values of an even number.
fn median(passes_ns: &[u64]) -> f64 {
    let mut sorted = passes_ns.to_vec();
    sorted.sort();
    let [below, above] = [(sorted.len() - 1) / 2, sorted.len() / 2].map(|at| sorted[at] as f64);
    f64::midpoint(below, above)
}

fn checks_legend(task: &str, rows: &[&Row]) -> String {
    let checks = checks::of_task(task);
    let known: Vec<_> =
        checks.iter().map(|(letter, check)| format!("{letter}{TIE}{check}")).collect();
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

/// The labels of the parts of the variants' names.
fn names_legend(task: &str, rows: &[&Row]) -> String {
    let mut parts: Vec<&str> = rows.iter().flat_map(|row| variant::parts(&row.variant)).collect();
    parts.sort_unstable();
    parts.dedup();
    let named = |part: &str| Some(format!("{part}: {}", variant::label(task, part)?));
    let is_plain = |part: &&str| !part.starts_with(variant::FORCED);
    let mut labels: Vec<String> =
        parts.iter().copied().filter(is_plain).filter_map(named).collect();
    if !parts.iter().all(is_plain) {
        labels.push(format!("{}…: SHA-256 by that back end", variant::FORCED));
    }
    match &labels[..] {
        [] => String::new(),
        labels => wrap(&format!("names: {}", labels.join("; ")), INDENT) + "\n",
    }
}

/// The baselines of the groups.
fn baselines(task: &str, rows: &[&Row], chosen: Option<&Baseline>) -> String {
    if chosen.is_none() && is_nostr(task) {
        return wrap(&format!("ratio: {RATIO}, {NOSTR_RATIO}"), INDENT) + "\n";
    }
    let mut lines = Vec::new();
    for group in groups(rows) {
        let name = group[0].group();
        if let Some(row) = baseline::of_group(group[0], rows, chosen) {
            lines.push(format!("{name} against {} {}", row.peer, row.variant));
        }
    }
    match (lines.is_empty(), chosen) {
        (false, _) => wrap(&format!("ratio: {RATIO}; {}", lines.join(", ")), INDENT) + "\n",
        (true, Some(chosen)) => format!("ratio: none, {chosen} has no ranked row here\n"),
        (true, None) => format!("ratio: none, {} has a ranked row here\n", baseline::absent(task)),
    }
}

/// The different notes of a peer, with their variants.
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
        format!("  {}\n", mark_wrong(&wrap(&text, INDENT)))
    };
    if notes.is_empty() {
        return String::new();
    }
    format!("notes\n{}", notes.iter().map(line).collect::<String>())
}

const MISMATCH: &str = "**mismatch**";
/// Keeps a letter and its check on one line.
const TIE: char = '\u{a0}';
/// Indentation of a legend's continuation lines.
const INDENT: usize = 8;
const STAGES_LEGEND: &str =
    "stages: median of each; one that a peer cannot tell apart is in the one before it\n";
const RATIO: &str = "N × NAME is N times as fast as NAME";
const NOSTR_RATIO: &str =
    "the fastest other implementation of the same format, or of JSON where there is none";
