//! `wireproof nostr analyze`: of which kinds are events, how long, how tagged?

use std::io::{self, Write};

use ::bench::nostr::{Analysis, Analyzer, ClassCount, Quantiles};

use crate::args::nostr::AnalyzeArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::table;

pub(super) fn run(args: &AnalyzeArgs, output: Output) -> Result<(), Failure> {
    let mut analyst = Analyzer::default();
    args.events.open()?.each_group(|group| {
        group.into_events()?.iter().for_each(|event| analyst.add(event));
        Ok::<_, Failure>(())
    })?;
    let analysis = analyst.finish();
    let mut out = output.stdout();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &analysis).map_err(io::Error::from)?;
        return Ok(writeln!(out)?);
    }
    let shown = if args.all { usize::MAX } else { SHOWN };
    Ok(out.write_all(text(&analysis, shown).as_bytes())?)
}

fn text(found: &Analysis, shown: usize) -> String {
    let Analysis { events, json_total, values, values_of_64_digits, .. } = found;
    let percent = |part: u64, of: u64| format!("{:.1} %", part as f64 * 100.0 / of.max(1) as f64);
    let hexadecimal = found.percent_hexadecimal;
    let mut text = format!("{events} events, {json_total} bytes as JSON\n");
    text += &format!("{hexadecimal:.1} % of the bytes are digits of ids, keys and signatures; ");
    text += &format!("so are {} of the tags' values\n\n", percent(*values_of_64_digits, *values));

    let header = ["", "p50", "p90", "p99", "max", "mean"];
    let lines = [
        ("JSON bytes", found.json_bytes),
        ("content bytes", found.content_bytes),
        ("tags", found.tags),
    ];
    text += &table::of(header, lines.map(|(name, it)| row(name.to_owned(), it)));

    text += "\n";
    let header = ["kind", "events", "share", "JSON p50", "p90", "p99", "max", "mean"];
    let kinds = found.kinds.iter().take(shown).map(|it| {
        let [_, p50, p90, p99, max, mean] = row(String::new(), it.json_bytes);
        let share = percent(it.events, *events);
        [it.kind.to_string(), it.events.to_string(), share, p50, p90, p99, max, mean]
    });
    text += &table::of(header, kinds);
    text += &more(found.kinds.len(), shown);

    for (name, classes) in [("by size", &found.size_classes), ("by tags", &found.tag_classes)] {
        let class = |it: &ClassCount| {
            [it.name.to_owned(), it.events.to_string(), percent(it.events, *events)]
        };
        text += "\n";
        text += &table::of([name, "events", "share"], classes.iter().map(class));
    }

    text += "\n";
    let names = found.tag_names.iter().take(shown);
    text +=
        &table::of(["tag", "tags"], names.map(|it| [shown_name(&it.name), it.tags.to_string()]));
    text + &more(found.tag_names.len(), shown)
}

fn row(name: String, Quantiles { p50, p90, p99, max, mean }: Quantiles) -> [String; 6] {
    let [p50, p90, p99, max, mean] = [p50, p90, p99, max, mean].map(|it| it.to_string());
    [name, p50, p90, p99, max, mean]
}

fn more(count: usize, shown: usize) -> String {
    match count.saturating_sub(shown) {
        0 => String::new(),
        more => format!("… and {more} more: --all or --json shows them\n"),
    }
}

/// A name as it may stand in a terminal: somebody else has chosen it.
fn shown_name(name: &str) -> String {
    let short: String = name.chars().take(NAME_CHARS).collect();
    short.escape_debug().to_string()
}

/// Lines of a table unless all are asked for.
const SHOWN: usize = 20;
const NAME_CHARS: usize = 40;
