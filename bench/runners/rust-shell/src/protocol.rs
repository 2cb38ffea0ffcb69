//! What does a runner say on its standard input and output? One JSON object a line, as
//! `bench/runners/PROTOCOL.md` has it.

use std::hint::black_box;
use std::io::{self, BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use serde_json::{Map, Value, json};

use crate::corpus::Corpus;
use crate::sink::{Barrier, Sink};
use crate::{Counts, Peer, Refusal};

const TASK: &str = "decode";
/// Refusals told on standard error; the rest are only counted.
const TOLD_REFUSALS: u64 = 5;

/// Answers requests until standard input ends.
///
/// # Errors
///
/// When standard input or output fails.
pub fn run<P: Peer>() -> io::Result<()> {
    let mut loaded = None;
    let mut answers = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let answer =
            answer::<P>(&line?, &mut loaded).unwrap_or_else(|error| json!({ "error": error }));
        writeln!(answers, "{answer}")?;
        answers.flush()?;
    }
    Ok(())
}

/// A peer made ready, and the frames it will work on.
struct Loaded<P> {
    peer: P,
    corpus: Corpus,
}

fn answer<P: Peer>(line: &str, loaded: &mut Option<Loaded<P>>) -> Result<Value, String> {
    let request: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
    match text(&request, "cmd")? {
        "describe" => Ok(describe::<P>()),
        "load" => {
            let fresh = loaded.insert(load(&request)?);
            Ok(json!({ "units": fresh.corpus.units().len(), "bytes": fresh.corpus.unit_bytes() }))
        }
        "prove" => Ok(json!({ "counts": prove(ready(loaded)?).to_json() })),
        "pass" => Ok(json!({ "ns": pass(ready(loaded)?) })),
        other => Err(format!("unknown request {other:?}")),
    }
}

fn describe<P: Peer>() -> Value {
    let variants: Map<_, _> = P::VARIANTS
        .iter()
        .map(|variant| (variant.name.to_owned(), json!(variant.checks)))
        .collect();
    json!({
        "engine": format!("{}, on mimalloc", P::ENGINE),
        "version": P::VERSION,
        "language": "rust",
        "tasks": { TASK: variants },
    })
}

fn load<P: Peer>(request: &Value) -> Result<Loaded<P>, String> {
    let (task, variant) = (text(request, "task")?, text(request, "variant")?);
    if task != TASK || !P::VARIANTS.iter().any(|known| known.name == variant) {
        return Err(format!("no variant {variant:?} of task {task:?} here"));
    }
    let files = request["files"].as_array().ok_or("`files` is not an array")?;
    let corpus = Corpus::read(files.iter().filter_map(Value::as_str))?;
    Ok(Loaded { peer: P::start(variant), corpus })
}

fn prove<P: Peer>(Loaded { peer, corpus }: &mut Loaded<P>) -> Counts {
    let mut total = Counts::default();
    for frame in corpus.units() {
        let mut counts = Counts::default();
        match decode(peer, frame, &mut counts) {
            Ok(()) => total.add(&counts),
            Err(refusal) => {
                total.errors += 1;
                tell(total.frames, total.errors, &refusal);
            }
        }
        total.frames += 1;
    }
    total
}

fn pass<P: Peer>(Loaded { peer, corpus }: &mut Loaded<P>) -> u64 {
    let start = Instant::now();
    for frame in corpus.units() {
        let _ = black_box(decode(peer, frame, &mut Barrier));
    }
    start.elapsed().as_nanos() as u64
}

/// A library that panics on bad input has refused it: a fault of one frame never ends a run.
pub(crate) fn decode<P: Peer>(
    peer: &mut P,
    frame: &[u8],
    sink: &mut impl Sink,
) -> Result<(), Refusal> {
    catch_unwind(AssertUnwindSafe(|| peer.decode(frame, sink)))
        .unwrap_or_else(|_| Err("panicked".into()))
}

fn tell(frame: u64, errors: u64, refusal: &Refusal) {
    if errors <= TOLD_REFUSALS {
        eprintln!("frame {frame} refused: {refusal}");
    }
}

fn ready<P>(loaded: &mut Option<Loaded<P>>) -> Result<&mut Loaded<P>, String> {
    loaded.as_mut().ok_or_else(|| "nothing is loaded".into())
}

fn text<'a>(request: &'a Value, name: &str) -> Result<&'a str, String> {
    request[name].as_str().ok_or_else(|| format!("`{name}` is not a string"))
}
