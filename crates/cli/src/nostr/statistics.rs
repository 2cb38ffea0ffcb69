//! `wireproof nostr sizes`, `analyze` and `recommend`: tables about events and formats.

use std::fmt::Display;

use ::bench::Results;
use ::bench::nostr::{
    self, Analysis, Analyzer, Candidate, ClassCount, Criterion, FormatSizes, Quantiles,
    Recommendation, SizeTable, UnheldEvent, Weights,
};
use nostr_formats::Format;
use serde::Serialize;

use super::failure::FileFailure;
use super::{AnalyzeArgs, RecommendArgs, SizesArgs};
use crate::failure::Failure;
use crate::files;
use crate::output::{Output, and_more, table};

pub(super) fn sizes(args: &SizesArgs, output: Output) -> Result<(), Failure> {
    let formats = if args.formats.is_empty() { Format::ALL } else { &args.formats };
    let mut sizes = SizeTable::new(formats);
    args.events.open()?.each_group(|group| {
        let events = group.into_events()?;
        let selected = { events.iter() }
            .filter(|event| args.kind.is_empty() || args.kind.contains(&event.kind));
        selected.for_each(|event| sizes.add(event));
        Ok::<_, FileFailure>(())
    })?;
    let summary = SizesSummary { events: sizes.events(), formats: sizes.finish() };
    output.document(&summary, args.json, SizesSummary::to_text)
}

#[derive(Serialize)]
struct SizesSummary {
    /// Events read.
    events: u64,
    /// The formats, with the events in their sums, and the events that they cannot hold.
    formats: Vec<FormatSizes>,
}

impl SizesSummary {
    fn to_text(&self) -> String {
        let header =
            ["format", "raw", "of json", "gzip-6", "zstd-3", "framed zstd-3", "of json", "events"];
        let mut text = format!("{} events, bytes per event\n", self.events);
        text += &table(header, self.formats.iter().map(sizes_row));
        let unheld = self.formats.iter().filter(|format| !format.unheld.is_empty());
        let lines: String = unheld.map(unheld_text).collect();
        if lines.is_empty() { text } else { format!("{text}\n{lines}{SAME_EVENTS}") }
    }
}

fn sizes_row(of: &FormatSizes) -> [String; 8] {
    let FormatSizes { sizes, json, .. } = of;
    let mean = |bytes: u64| format!("{:.1}", bytes as f64 / of.events.max(1) as f64);
    [
        of.format.to_owned(),
        mean(sizes.raw),
        percent(sizes.raw, json.raw),
        mean(sizes.gzip6),
        mean(sizes.zstd3),
        mean(sizes.framed_zstd3),
        percent(sizes.framed_zstd3, json.framed_zstd3),
        of.events.to_string(),
    ]
}

/// The events that a format cannot hold, the first of them by id.
fn unheld_text(of: &FormatSizes) -> String {
    let mut text = format!("{} cannot hold {} of the events:\n", of.format, of.unheld.events);
    for UnheldEvent { id, kind, reason } in of.unheld.named.iter().take(SHOWN) {
        text += &format!("  {id} of kind {kind}: {reason}\n");
    }
    match of.unheld.events.saturating_sub(SHOWN as u64) {
        0 => text,
        more => text + &format!("  and {more} more; --json names the first 100\n"),
    }
}

pub(super) fn analyze(args: &AnalyzeArgs, output: Output) -> Result<(), Failure> {
    let mut analyzer = Analyzer::default();
    args.events.open()?.each_group(|group| {
        group.into_events()?.iter().for_each(|event| analyzer.add(event));
        Ok::<_, FileFailure>(())
    })?;
    let shown = if args.all { usize::MAX } else { SHOWN };
    output.document(&analyzer.finish(), args.json, |analysis| analysis_text(analysis, shown))
}

fn analysis_text(analysis: &Analysis, shown: usize) -> String {
    let Analysis { events, json_total, values, values_of_64_digits, .. } = analysis;
    let mut text = format!(
        "{events} events, {json_total} bytes as JSON\n\
         {:.1} % of the bytes are digits of ids, keys and signatures; so are {} of the tag values\n\n",
        analysis.percent_hexadecimal,
        percent(*values_of_64_digits, *values)
    );
    let header = ["", "p50", "p90", "p99", "max", "mean"];
    let lines = [
        ("JSON bytes", analysis.json_bytes),
        ("content bytes", analysis.content_bytes),
        ("tags", analysis.tags),
    ];
    text += &table(header, lines.map(|(name, quantiles)| quantile_row(name, quantiles)));

    text += "\n";
    let header = ["kind", "events", "share", "JSON p50", "p90", "p99", "max", "mean"];
    let kinds = analysis.kinds.iter().take(shown).map(|kind| {
        let [name, p50, p90, p99, max, mean] = quantile_row(kind.kind, kind.json_bytes);
        [name, kind.events.to_string(), percent(kind.events, *events), p50, p90, p99, max, mean]
    });
    text += &table(header, kinds);
    text += &and_more(analysis.kinds.len(), shown);

    for (name, classes) in [("by size", &analysis.size_classes), ("by tags", &analysis.tag_classes)]
    {
        let row = |class: &ClassCount| {
            [class.name.to_owned(), class.events.to_string(), percent(class.events, *events)]
        };
        text += "\n";
        text += &table([name, "events", "share"], classes.iter().map(row));
    }

    text += "\n";
    let names = analysis.tag_names.iter().take(shown);
    let row = |name: &str, tags: u64| [printable(name), tags.to_string()];
    text += &table(["tag", "tags"], names.map(|tag| row(&tag.name, tag.tags)));
    text + &and_more(analysis.tag_names.len(), shown)
}

fn quantile_row(name: impl Display, quantiles: Quantiles) -> [String; 6] {
    let Quantiles { p50, p90, p99, max, mean } = quantiles;
    let [p50, p90, p99, max, mean] = [p50, p90, p99, max, mean].map(|bytes| bytes.to_string());
    [name.to_string(), p50, p90, p99, max, mean]
}

fn percent(part: u64, of: u64) -> String {
    format!("{:.1} %", part as f64 * 100.0 / of.max(1) as f64)
}

/// An untrusted name, cut and escaped for a terminal.
fn printable(name: &str) -> String {
    let short: String = name.chars().take(NAME_CHARS).collect();
    short.escape_debug().to_string()
}

pub(super) fn recommend(args: &RecommendArgs, output: Output) -> Result<(), Failure> {
    let RecommendArgs { results: path, speed, size, validated, tooling, .. } = args;
    let weights = Weights { speed: *speed, size: *size, validated: *validated, tooling: *tooling };
    if weights == (Weights { speed: 0, size: 0, validated: 0, tooling: 0 }) {
        return Err(Failure::Usage("every weight is 0: nothing to rank by".to_owned()));
    }
    let results: Results = serde_json::from_slice(&files::read_document(path, usize::MAX)?)
        .map_err(|error| {
            Failure::refused(path, format_args!("not the results of a run: {error}"))
        })?;
    let recommendation = nostr::recommend(&results, weights);
    let recommendation = recommendation.map_err(|fault| Failure::refused(path, fault))?;
    output.document(&recommendation, args.json, recommendation_text)
}

fn recommendation_text(recommendation: &Recommendation) -> String {
    let Recommendation { candidates, weights, started, cpu, .. } = recommendation;
    let header = ["rank", "", "score", "speed", "size", "validated", "tooling"];
    let mut text = table(header, candidates.iter().map(candidate_row));
    let is_tied = |pair: &[Candidate]| pair[0].rank == pair[1].rank;
    if candidates.windows(2).any(is_tied) {
        text +=
            "\nFormats of the same rank are tied: the passes of the run do not tell them apart.\n";
    }
    text += "\nPoints out of 100, and their weighted mean:\n";
    for criterion in Criterion::ALL {
        let (weight, name) = (weights.of(criterion), criterion.name());
        let remark = match (weight, recommendation.unmeasured.contains(&criterion)) {
            (0, _) => "left out",
            (_, true) => "left out: the results have no such rows",
            (_, false) => description(criterion),
        };
        text += &format!("  {name:<10} {weight:>3}  {remark}\n");
    }
    for format in &recommendation.incomplete {
        let missing: Vec<_> = format.missing.iter().map(|criterion| criterion.name()).collect();
        text +=
            &format!("Not ranked: {}, without rows for {}\n", format.format, missing.join(", "));
    }
    if weights.tooling > 0 {
        text += "\nTooling is our judgement:\n";
        for candidate in candidates {
            text += &format!("  {:<20} {}\n", candidate.format, candidate.tooling);
        }
    }
    text + &format!("\nOur own codecs, measured {started} on {cpu}.\n")
}

fn candidate_row(candidate: &Candidate) -> [String; 7] {
    let points =
        |points: Option<f64>| points.map_or("–".to_owned(), |points| format!("{points:.0}"));
    let [speed, size, validated, tooling] = candidate.points.map(points);
    let score = format!("{:.1}", candidate.score);
    let rank = candidate.rank.to_string();
    [rank, candidate.format.to_owned(), score, speed, size, validated, tooling]
}

fn description(criterion: Criterion) -> &'static str {
    match criterion {
        Criterion::Speed => "geometric mean of the shares of the fastest encoder and decoder",
        Criterion::Size => {
            "geometric mean of the shares of the fewest bytes, raw and framed Zstandard"
        }
        Criterion::Validated => "share of the fastest decoding with id and signature, in batches",
        Criterion::Tooling => "available libraries and languages",
    }
}

/// How the sums of formats that cannot hold every event relate to the other formats' sums.
const SAME_EVENTS: &str =
    "Each format's sums are of the events that it can hold; `of json` compares the same events.\n";

/// Rows shown without `--all`.
const SHOWN: usize = 20;
/// Characters shown of a tag name.
const NAME_CHARS: usize = 40;
