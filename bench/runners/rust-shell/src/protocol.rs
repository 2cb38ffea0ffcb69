//! What does a runner say on its standard input and output? One JSON object a line, as
//! `bench/runners/PROTOCOL.md` has it.

use std::io::{self, BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use serde_json::{Map, Value, json};

use crate::{Proof, Refusal, Runner, Task, Work};

/// Refusals told on standard error; the rest are only counted.
const TOLD_REFUSALS: u64 = 5;

/// Answers requests until standard input ends.
///
/// # Errors
///
/// When standard input or output fails.
pub fn run(runner: &Runner<'_>) -> io::Result<()> {
    let mut loaded = None;
    let mut answers = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let answer =
            answer(runner, &line?, &mut loaded).unwrap_or_else(|error| json!({ "error": error }));
        writeln!(answers, "{answer}")?;
        answers.flush()?;
    }
    Ok(())
}

type Loaded = Option<Box<dyn Work>>;

fn answer(runner: &Runner<'_>, line: &str, loaded: &mut Loaded) -> Result<Value, String> {
    let request: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
    match text(&request, "cmd")? {
        "describe" => Ok(describe(runner)),
        "load" => {
            let size = loaded.insert(load(runner, &request)?).size();
            Ok(json!({ "units": size.units, "bytes": size.bytes }))
        }
        "prove" => ready(loaded)?.prove().map(proven).map_err(|refusal| refusal.to_string()),
        "pass" => pass(ready(loaded)?).map_err(|refusal| refusal.to_string()),
        other => Err(format!("unknown request {other:?}")),
    }
}

fn describe(runner: &Runner<'_>) -> Value {
    let mut tasks = Map::new();
    for task in runner.tasks {
        let variants = tasks.entry(task.name).or_insert_with(|| json!({}));
        for variant in task.variants {
            variants[variant.name] = json!(variant.checks);
        }
    }
    json!({
        "engine": format!("{}, on mimalloc", runner.engine),
        "version": runner.version,
        "language": "rust",
        "tasks": tasks,
    })
}

fn load(runner: &Runner<'_>, request: &Value) -> Result<Box<dyn Work>, String> {
    let (task, variant) = (text(request, "task")?, text(request, "variant")?);
    let has = |known: &&Task| known.variants.iter().any(|known| known.name == variant);
    let known = runner.tasks.iter().filter(|known| known.name == task).find(has);
    let known = known.ok_or_else(|| format!("no variant {variant:?} of task {task:?} here"))?;
    let files = request["files"].as_array().ok_or("`files` is not an array")?;
    (known.load)(variant, &files.iter().filter_map(Value::as_str).collect::<Vec<_>>())
}

fn proven(proof: Proof) -> Value {
    let mut answer = json!({ "counts": proof.counts });
    if let Some(reason) = proof.reason {
        answer["reason"] = reason.into();
    }
    if let Some(allocations) = proof.allocations {
        answer["allocations"] = allocations.into();
    }
    answer
}

fn pass(work: &mut dyn Work) -> Result<Value, Refusal> {
    let start = Instant::now();
    let parts = work.pass()?;
    let mut answer = json!({ "ns": start.elapsed().as_nanos() as u64 });
    for (name, ns) in parts.stages_ns {
        answer["stages_ns"][name.as_ref()] = ns.into();
    }
    if !parts.chunks_ns.is_empty() {
        answer["chunks_ns"] = parts.chunks_ns.into();
    }
    Ok(answer)
}

/// Does a unit's work. A library that panics on bad input has refused it: a fault of one unit never
/// ends a run.
#[inline]
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T, Refusal>) -> Result<T, Refusal> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err("panicked".into()))
}

/// Does the work of each unit; one at which a library panics is refused, and the next comes. Where
/// none does, this costs nothing.
pub(crate) fn each_guarded<T>(units: &[T], mut work: impl FnMut(&T)) {
    let mut next = units.iter();
    while !next.as_slice().is_empty() {
        let _ = catch_unwind(AssertUnwindSafe(|| next.by_ref().for_each(&mut work)));
    }
}

/// Tells a person of one of the first refusals.
pub(crate) fn tell(unit: usize, errors: u64, refusal: &Refusal) {
    if errors <= TOLD_REFUSALS {
        eprintln!("unit {unit} refused: {refusal}");
    }
}

fn ready(loaded: &mut Loaded) -> Result<&mut dyn Work, String> {
    Ok(loaded.as_mut().ok_or("nothing is loaded")?.as_mut())
}

fn text<'a>(request: &'a Value, name: &str) -> Result<&'a str, String> {
    request[name].as_str().ok_or_else(|| format!("`{name}` is not a string"))
}
