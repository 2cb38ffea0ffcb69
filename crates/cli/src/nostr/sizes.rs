//! `wireproof nostr sizes`: how many bytes do events take in each format?

use std::io::{self, Write};

use ::bench::nostr::{FormatSizes, SizeTable};
use serde::Serialize;
use wireproof::nostr::formats::Format;

use crate::args::nostr::SizesArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::table;

pub(super) fn run(args: &SizesArgs, output: Output) -> Result<(), Failure> {
    let formats = if args.formats.is_empty() { Format::ALL } else { &args.formats };
    let mut sizes = SizeTable::new(formats);
    args.events.open()?.each_group(|group| {
        let events = group.into_events()?;
        let wanted =
            events.iter().filter(|it| args.kind.is_empty() || args.kind.contains(&it.kind));
        wanted.for_each(|event| sizes.add(event));
        Ok::<_, Failure>(())
    })?;
    let told = Told { events: sizes.events(), left_out: sizes.left_out(), formats: sizes.finish() };
    let mut out = output.stdout();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &told).map_err(io::Error::from)?;
        return Ok(writeln!(out)?);
    }
    Ok(out.write_all(told.to_text().as_bytes())?)
}

#[derive(Serialize)]
struct Told {
    /// Events that every format holds.
    events: u64,
    /// Events that one of the formats cannot hold.
    left_out: u64,
    formats: Vec<FormatSizes>,
}

impl Told {
    fn to_text(&self) -> String {
        let mut text = format!("{} events, bytes an event\n", self.events);
        if self.left_out > 0 {
            let left_out = self.left_out;
            text += &format!("{left_out} events left out, which one of the formats cannot hold\n");
        }
        let json = self.formats.iter().find(|it| it.format == Format::Json.name());
        let header = ["format", "raw", "of json", "gzip-6", "zstd-3", "framed zstd-3", "of json"];
        text + &table::of(header, self.formats.iter().map(|it| self.row(it, json)))
    }

    fn row(&self, found: &FormatSizes, json: Option<&FormatSizes>) -> [String; 7] {
        let mean = |bytes: u64| format!("{:.1}", bytes as f64 / self.events.max(1) as f64);
        let share = |bytes: fn(&FormatSizes) -> u64| match json {
            Some(json) => {
                let share = bytes(found) as f64 * 100.0 / bytes(json).max(1) as f64;
                format!("{share:.1} %")
            }
            None => String::new(),
        };
        let sizes = &found.sizes;
        [
            found.format.to_owned(),
            mean(sizes.raw),
            share(|it| it.sizes.raw),
            mean(sizes.gzip6),
            mean(sizes.zstd3),
            mean(sizes.framed_zstd3),
            share(|it| it.sizes.framed_zstd3),
        ]
    }
}
