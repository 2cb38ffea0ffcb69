//! The report page: its sections in order.

mod controls;
mod history;
mod hostile;
mod model;
mod nostr;
mod peers;
mod ranking;
mod repeat;
mod sizes;
mod stages;
mod summary;
mod task;
#[cfg(test)]
mod tests;

use results::{Results, Row};

use crate::html::{Html, Tag, tag};
use crate::ratios::Ratios;
use crate::{Options, RAW, about, assets, machine, markdown};

/// The page of the newest of these runs, with the ratios of all of them over time; `None` without a run.
///
/// The rows of every run must be in the order of the report, as returned by [`read()`](crate::read()) and by a run.
pub fn page(runs: &[Results], options: &Options) -> Option<String> {
    let mut runs: Vec<&Results> = runs.iter().collect();
    runs.sort_by(|a, b| a.started.cmp(&b.started));
    let newest = *runs.last()?;
    let baseline = options.baseline.as_ref();
    let ratios = runs.iter().map(|run| Ratios::of(run, baseline)).collect();
    let view = View { newest, runs, ratios };
    let data = serde_json::to_string(&model::of(&view)).expect("text, numbers, lists and maps");
    Some(assets::assemble(TITLE, body(&view).as_str(), &data))
}

/// The input of a page.
struct View<'r> {
    newest: &'r Results,
    /// All runs by time, the newest last.
    runs: Vec<&'r Results>,
    /// The ratios by run.
    ratios: Vec<Ratios<'r>>,
}

impl<'r> View<'r> {
    fn newest_ratios(&self) -> &Ratios<'r> {
        self.ratios.last().expect("a page has a run")
    }

    /// The rows by task, in the order of the report.
    fn tasks(&self) -> Vec<(&'r str, Vec<&'r Row>)> {
        let tasks = self.newest.rows.chunk_by(|a, b| a.task == b.task);
        tasks.map(|rows| (rows[0].task.as_str(), rows.iter().collect())).collect()
    }
}

fn body(view: &View<'_>) -> Html {
    let (nostr, others): (Vec<_>, Vec<_>) =
        view.tasks().into_iter().partition(|(task, _)| is_nostr(task));
    let main = tag("main")
        .attr("id", "results")
        .with(summary::of(view.newest))
        .with(controls::of(view.newest))
        .with_all(others.iter().map(|(name, rows)| task::section(view, name, rows)))
        .with(nostr::section(view, &nostr))
        .with(repeat::unavailable(view))
        .with(history::of(view))
        .with(peers::of(view.newest))
        .with(repeat::machine(view))
        .with(repeat::of(view))
        .with(documents());
    header(view, &others, !nostr.is_empty()).and(main).and(footer())
}

/// Whether a task is about Nostr events.
fn is_nostr(task: &str) -> bool {
    task == "schnorr" || task.starts_with("nostr-")
}

fn header(view: &View<'_>, tasks: &[(&str, Vec<&Row>)], has_nostr: bool) -> Html {
    let Results { started, machine, .. } = view.newest;
    let when = tag("time").attr("datetime", started).text(moment(started));
    let raw = tag("a").attr("href", RAW).text("raw results");
    let line = tag("p")
        .class("where")
        .with(when)
        .text(format!(" · {} · {} · ", machine::words(machine), machine.os))
        .with(raw);
    let quick = view.newest.settings.as_ref().is_some_and(|settings| settings.quick);
    let quick = quick.then(|| {
        tag("p").class("notice").text(
            "A quick run: small corpora and few passes. It shows that everything works, not how fast.",
        )
    });
    let links = tasks.iter().map(|(task, _)| link(&format!("#{}", anchor(task)), title(task)));
    let nostr = has_nostr.then(|| link("#nostr", "Nostr events"));
    let others = OTHERS.map(|(to, name)| link(to, name));
    let list = tag("ul").with_all(links).with(nostr).with_all(others);
    let nav = tag("nav").attr("aria-label", "Contents").with(list);
    let title = tag("h1").text(TITLE);
    let figures = summary::figures(view.newest);
    tag("header").with(title).with(figures).with(quick).with(line).with(nav).into()
}

const OTHERS: [(&str, &str); 5] = [
    ("#peers", "Peers"),
    ("#machine", "Machine and corpora"),
    ("#repeat", "Repeat it"),
    ("#method", "Method"),
    ("#bias", "Bias"),
];

fn link(to: &str, name: &str) -> Html {
    tag("li").with(tag("a").attr("href", to).text(name)).into()
}

fn footer() -> Html {
    let text = "This file makes no requests; the raw results are a file in the same folder. Numbers are medians; points are \
                passes; no pass is dropped.";
    tag("footer").with(tag("p").text(text)).into()
}

fn documents() -> Html {
    let method = document("method", "How a run works", results::METHOD);
    let bias = document("bias", "Known biases", results::BIAS);
    Html::from(method).and(bias)
}

fn document(id: &'static str, title: &str, text: &str) -> Tag {
    let heading = tag("h2").attr("id", format!("{id}-title")).text(title);
    let summary = tag("summary").text(format!("Read bench/{}.md", id.to_uppercase()));
    tag("section")
        .class("document")
        .attr("id", id)
        .attr("aria-labelledby", format!("{id}-title"))
        .with(heading)
        .with(tag("details").with(summary).with(markdown::to_html(text)))
}

/// `2026-11-21T22:04:12Z` in readable form, or unchanged if it has another form.
fn moment(started: &str) -> String {
    let parsed: Result<jiff::Timestamp, _> = started.parse();
    parsed.map_or_else(|_| started.to_owned(), |at| at.strftime("%-d %B %Y, %H:%M UTC").to_string())
}

fn title(task: &str) -> &str {
    about::task(task).map_or(task, |about| about.title)
}

/// Where a task's section is: a name that needs no escape in an address.
fn anchor(task: &str) -> String {
    let kept = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    format!("task-{}", task.chars().map(kept).collect::<String>())
}

const TITLE: &str = "Wireproof benchmark";
