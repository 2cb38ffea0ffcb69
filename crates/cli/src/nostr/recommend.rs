//! `wireproof nostr recommend`: which format do results speak for, and why?

use std::fs;
use std::io::{self, Write};

use ::bench::Results;
use ::bench::nostr::{Candidate, Criterion, Recommendation, Weights, recommend};

use crate::args::nostr::RecommendArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::table;

pub(super) fn run(args: &RecommendArgs, output: Output) -> Result<(), Failure> {
    let RecommendArgs { results: path, speed, size, validated, tooling, .. } = args;
    let weights = Weights { speed: *speed, size: *size, validated: *validated, tooling: *tooling };
    if weights == (Weights { speed: 0, size: 0, validated: 0, tooling: 0 }) {
        return Err(Failure::Usage("every weight is 0: nothing to rank by".to_owned()));
    }
    let refused = |why: String| Failure::Refused(format!("{}: {why}", path.display()));
    let text = fs::read(path).map_err(Failure::file(path))?;
    let results: Results = serde_json::from_slice(&text)
        .map_err(|error| refused(format!("not the results of a run: {error}")))?;
    let found = recommend(&results, weights).map_err(|fault| refused(fault.to_string()))?;
    let mut out = output.stdout();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &found).map_err(io::Error::from)?;
        return Ok(writeln!(out)?);
    }
    Ok(out.write_all(told(&found).as_bytes())?)
}

fn told(found: &Recommendation) -> String {
    let header = ["", "score", "speed", "size", "validated", "tooling"];
    let mut text = table::of(header, found.candidates.iter().map(row));
    text += "\nPoints of 100, and their mean, weighed:\n";
    for criterion in Criterion::ALL {
        let (weight, name) = (found.weights.of(criterion), criterion.name());
        let unmeasured = found.unmeasured.contains(&criterion);
        let remark = match (weight, unmeasured) {
            (0, _) => "left out".to_owned(),
            (_, true) => "left out: the results have no such rows".to_owned(),
            (_, false) => meaning(criterion).to_owned(),
        };
        text += &format!("  {name:<10} {weight:>3}  {remark}\n");
    }
    for format in &found.incomplete {
        let missing: Vec<_> = format.missing.iter().map(|it| it.name()).collect();
        text +=
            &format!("Not ranked: {}, without rows for {}\n", format.format, missing.join(", "));
    }
    if found.weights.tooling > 0 {
        text += "\nTooling is our judgement:\n";
        for it in &found.candidates {
            text += &format!("  {:<20} {}\n", it.format, it.tooling);
        }
    }
    text + &format!("\nOur own codecs, measured {} on {}.\n", found.started, found.cpu)
}

fn row(candidate: &Candidate) -> [String; 6] {
    let points = |points: Option<f64>| points.map_or("–".to_owned(), |it| format!("{it:.0}"));
    let [speed, size, validated, tooling] = candidate.points.map(points);
    let score = format!("{:.1}", candidate.score);
    [candidate.format.to_owned(), score, speed, size, validated, tooling]
}

fn meaning(criterion: Criterion) -> &'static str {
    match criterion {
        Criterion::Speed => "geometric mean of the shares of the fastest encoder and decoder",
        Criterion::Size => "the same of the least bytes, raw and framed under Zstandard",
        Criterion::Validated => "share of the fastest decoding with id and signature, in batches",
        Criterion::Tooling => "what there is to read it with",
    }
}
