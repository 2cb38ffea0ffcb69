//! The report page: its sections in order.

mod distribution;
mod hostile;
mod model;
mod repeat;
mod sizes;
mod speeds;
mod stages;
mod task;
#[cfg(test)]
mod tests;

use bench::{Results, Row};

use crate::html::{Html, Tag, tag};
use crate::ratios::Ratios;
use crate::{Options, about, assets, markdown};

/// The page of the newest of these runs, with the ratios of all of them over time; `None` without a run.
///
/// The rows of each run must be in the order of the report, as returned by [`read()`](crate::read()) and by a run.
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
    /// The ratios of each run.
    ratios: Vec<Ratios<'r>>,
}

/// A row of the newest run, and its place in it.
type Placed<'r> = (usize, &'r Row);

impl<'r> View<'r> {
    fn newest_ratios(&self) -> &Ratios<'r> {
        self.ratios.last().expect("a page has a run")
    }

    /// The rows of each task, in the order of the report.
    fn tasks(&self) -> Vec<(&'r str, Vec<Placed<'r>>)> {
        let mut tasks: Vec<(&str, Vec<Placed<'_>>)> = Vec::new();
        for (at, row) in self.newest.rows.iter().enumerate() {
            match tasks.last_mut() {
                Some((task, rows)) if *task == row.task => rows.push((at, row)),
                _ => tasks.push((&row.task, vec![(at, row)])),
            }
        }
        tasks
    }
}

fn body(view: &View<'_>) -> Html {
    let tasks = view.tasks();
    let main = tag("main")
        .attr("id", "results")
        .with(task::overview(view, &tasks))
        .with(model::controls(view))
        .with_all(tasks.iter().map(|(name, rows)| task::section(view, name, rows)))
        .with(repeat::unavailable(view))
        .with(speeds::history(view))
        .with(repeat::machine(view))
        .with(repeat::of(view, &tasks))
        .with(documents());
    header(view, &tasks).and(main).and(footer())
}

fn header(view: &View<'_>, tasks: &[(&str, Vec<Placed<'_>>)]) -> Html {
    let Results { started, machine, .. } = view.newest;
    let when = tag("time").attr("datetime", started).text(moment(started));
    let line = tag("p").class("where").with(when).text(format!(
        " · {} · {} {} · {}",
        machine.cpu,
        machine.cores,
        if machine.cores == 1 { "core" } else { "cores" },
        machine.os
    ));
    let quick = view.newest.settings.as_ref().is_some_and(|settings| settings.quick);
    let quick = quick.then(|| {
        tag("p").class("notice").text(
            "A quick run: small corpora and few passes. It shows that all works, not how fast.",
        )
    });
    let links = tasks.iter().map(|(task, _)| link(&format!("#{}", anchor(task)), title(task)));
    let others = [
        ("#machine", "Machine and corpora"),
        ("#repeat", "Repeat it"),
        ("#method", "Method"),
        ("#bias", "Bias"),
    ];
    let others = others.map(|(to, name)| link(to, name));
    let nav =
        tag("nav").attr("aria-label", "Contents").with(tag("ul").with_all(links).with_all(others));
    let title = tag("h1").text(TITLE);
    tag("header").with(title).with(line).with(quick).with(nav).into()
}

fn link(to: &str, name: &str) -> Html {
    tag("li").with(tag("a").attr("href", to).text(name)).into()
}

fn footer() -> Html {
    let text = "This file is self-contained and makes no requests. Numbers are medians; points are passes; no pass is \
                dropped.";
    tag("footer").with(tag("p").text(text)).into()
}

fn documents() -> Html {
    let method = document("method", "How a run works", bench::METHOD);
    let bias = document("bias", "Known biases", bench::BIAS);
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
