//! The mutated copy of the workspace, and its build.
//!
//! A mutant that does not compile is found by the place of the compiler's error and left out; the build is repeated
//! until it succeeds.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::schemata::{self, Rendered};
use crate::sites::{self, Site};
use crate::subjects::Subject;

/// A source file with its mutants.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) subject: &'static Subject,
    pub(crate) path: PathBuf,
    text: String,
    sites: Vec<Site>,
    /// The number of its first mutant.
    first: u32,
}

/// A mutant by its number.
#[derive(Clone, Debug)]
pub(crate) struct Numbered {
    pub(crate) id: u32,
    pub(crate) subject: &'static str,
    /// File, function and change: the same after an edit elsewhere.
    pub(crate) key: String,
    /// Of the file's text.
    pub(crate) hash: u64,
}

/// A test program of the copy.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// `package`, or `package/target`.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    /// Where it runs.
    pub(crate) folder: PathBuf,
}

/// Reads the mutated files of a subject.
pub(crate) fn read(repository: &Path, subject: &'static Subject) -> Result<Vec<Source>, String> {
    let mut sources = Vec::new();
    let mut first = 1;
    for path in subject.files(repository)? {
        let text = fs::read_to_string(repository.join(&path));
        let text = text.map_err(|error| at_path(&path, &error))?;
        let sites = sites::find(&text).map_err(|error| at_path(&path, &error))?;
        let count: usize = sites.iter().map(|site| site.mutants.len()).sum();
        sources.push(Source { subject, path, text, sites, first });
        first += count as u32;
    }
    if first > MAX_MUTANTS {
        return Err(format!("{} has more than {MAX_MUTANTS} mutants", subject.name));
    }
    Ok(sources)
}

/// Lists the mutants of the files.
pub(crate) fn mutants(sources: &[Source]) -> Vec<Numbered> {
    let mut all = Vec::new();
    for source in sources {
        let hash = hash(&source.text);
        let mut seen = BTreeMap::<String, u32>::new();
        let mut id = source.first;
        for site in &source.sites {
            for mutant in &site.mutants {
                let file = source.path.display();
                let key = format!("{file}: {}: {}", site.function, mutant.description);
                let count = seen.entry(key.clone()).or_default();
                *count += 1;
                let key = if *count == 1 { key } else { format!("{key} ({count})") };
                all.push(Numbered { id, subject: source.subject.name, key, hash });
                id += 1;
            }
        }
    }
    all
}

impl Source {
    /// The files that are written for it.
    fn written(&self) -> [PathBuf; 2] {
        [self.path.clone(), self.subject.root()]
    }
}

/// The copy of the workspace.
#[derive(Debug)]
pub(crate) struct Tree {
    repository: PathBuf,
    root: PathBuf,
}

impl Tree {
    /// Copies the files of the repository that Git knows, except files that get mutants. Unchanged ones keep their
    /// times.
    pub(crate) fn create(
        repository: &Path,
        root: PathBuf,
        sources: &[Source],
    ) -> Result<Self, String> {
        let mutated: HashSet<PathBuf> = sources.iter().flat_map(Source::written).collect();
        let mut list = Command::new("git");
        list.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
        let listed = list.current_dir(repository).output().map_err(|error| error.to_string())?;
        for name in listed.stdout.split(|&byte| byte == 0).filter(|name| !name.is_empty()) {
            let name = Path::new(std::str::from_utf8(name).map_err(|error| error.to_string())?);
            if mutated.contains(name) {
                continue;
            }
            // A file that is deleted but not yet committed is listed.
            if let Ok(content) = fs::read(repository.join(name)) {
                write(&root.join(name), &content)?;
            }
        }
        Ok(Self { repository: repository.to_owned(), root })
    }

    /// Writes the mutants and builds the tests, adding to `dropped` the mutants that do not compile.
    pub(crate) fn build(
        &self,
        subject: &Subject,
        sources: &[Source],
        dropped: &mut HashSet<u32>,
    ) -> Result<Vec<Program>, String> {
        let mut round = 0;
        loop {
            round += 1;
            let rendered = self.write_sources(subject, sources, dropped)?;
            eprintln!("build {round}, without {} mutants that do not compile", dropped.len());
            let built = self.cargo(subject.tests)?;
            if built.succeeded {
                return Ok(programs(&built.messages));
            }
            let before = dropped.len();
            for error in &built.messages {
                dropped.extend(blamed(error, &rendered));
            }
            if dropped.len() == before {
                let texts =
                    built.messages.iter().filter_map(|error| error["message"]["rendered"].as_str());
                return Err(texts.collect::<Vec<_>>().join("\n"));
            }
        }
    }

    fn write_sources(
        &self,
        subject: &Subject,
        sources: &[Source],
        dropped: &HashSet<u32>,
    ) -> Result<BTreeMap<PathBuf, Rendered>, String> {
        let mut all = BTreeMap::new();
        write(&self.root.join(subject.switch()), include_bytes!("switch.rs"))?;
        let root = subject.root();
        if sources.iter().all(|source| source.path != root) {
            let text = fs::read_to_string(self.repository.join(&root));
            let text = text.map_err(|error| at_path(&root, &error))?;
            write(&self.root.join(&root), with_switch(&text).as_bytes())?;
        }
        for source in sources {
            let mut rendered = schemata::render(&source.text, &source.sites, source.first, dropped);
            if source.path == root {
                rendered.text = with_switch(&rendered.text);
            }
            write(&self.root.join(&source.path), rendered.text.as_bytes())?;
            all.insert(source.path.clone(), rendered);
        }
        Ok(all)
    }

    /// Builds tests, given as `package` or `package/target`.
    fn cargo(&self, tests: &[&str]) -> Result<Built, String> {
        let mut cargo = Command::new("cargo");
        cargo.args(["test", "--no-run", "--offline", "--message-format=json", "--lib"]);
        for test in tests {
            let (package, target) = test.split_once('/').unwrap_or((test, ""));
            cargo.args(["-p", package]);
            if !target.is_empty() {
                cargo.args(["--test", target]);
            }
        }
        let output = cargo.current_dir(&self.root).stderr(Stdio::inherit()).output();
        let output = output.map_err(|error| error.to_string())?;
        let lines = output.stdout.split(|&byte| byte == b'\n');
        let messages = lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
        Ok(Built { succeeded: output.status.success(), messages })
    }
}

struct Built {
    succeeded: bool,
    messages: Vec<Value>,
}

fn with_switch(text: &str) -> String {
    format!("{text}\nmod __mutants;\n")
}

/// The test programs that a build names.
fn programs(messages: &[Value]) -> Vec<Program> {
    let built = messages.iter().filter(|message| message["profile"]["test"] == true);
    let named = built.filter_map(|message| {
        let manifest = Path::new(message["manifest_path"].as_str()?);
        let folder = manifest.parent()?.to_owned();
        let package = package_of(message["package_id"].as_str()?);
        let target = message["target"]["name"].as_str()?;
        let is_library = message["target"]["kind"][0] == "lib";
        let name = if is_library { package } else { format!("{package}/{target}") };
        Some(Program { name, path: message["executable"].as_str()?.into(), folder })
    });
    named.collect()
}

/// The name in `path+file:///folder#name@version`.
fn package_of(id: &str) -> String {
    let name = id.rsplit('#').next().unwrap_or_default();
    name.split('@').next().unwrap_or_default().to_owned()
}

/// The mutants that an error of the compiler is about.
fn blamed(error: &Value, rendered: &BTreeMap<PathBuf, Rendered>) -> Vec<u32> {
    if error["message"]["level"] != "error" {
        return Vec::new();
    }
    let mut spans = Vec::new();
    collect_spans(&error["message"], &mut spans);
    // Primary spans first, then the notes' spans.
    spans.sort_by_key(|span| span["is_primary"] != true);
    let found = spans.iter().find_map(|span| {
        let file = rendered.get(Path::new(span["file_name"].as_str()?))?;
        let at = span["byte_start"].as_u64()? as usize..span["byte_end"].as_u64()? as usize;
        at_place(file, &at)
    });
    found.unwrap_or_default()
}

fn collect_spans<'a>(message: &'a Value, spans: &mut Vec<&'a Value>) {
    for span in message["spans"].as_array().into_iter().flatten() {
        spans.push(span);
        let mut outer = &span["expansion"]["span"];
        while outer.is_object() {
            spans.push(outer);
            outer = &outer["expansion"]["span"];
        }
    }
    for child in message["children"].as_array().into_iter().flatten() {
        collect_spans(child, spans);
    }
}

/// The mutants of the narrowest place around the bytes, or of all places inside of them.
fn at_place(file: &Rendered, at: &Range<usize>) -> Option<Vec<u32>> {
    let around =
        file.places.iter().filter(|(place, _)| place.start <= at.start && at.end <= place.end);
    let narrowest = around.min_by_key(|(place, _)| place.len());
    if let Some((_, ids)) = narrowest {
        return Some(ids.clone());
    }
    let inside =
        file.places.iter().filter(|(place, _)| at.start <= place.start && place.end <= at.end);
    let ids: Vec<u32> = inside.flat_map(|(_, ids)| ids.clone()).collect();
    (!ids.is_empty()).then_some(ids)
}

/// Writes a file unless it has the content.
fn write(path: &Path, content: &[u8]) -> Result<(), String> {
    if fs::read(path).is_ok_and(|old| old == content) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| at_path(folder, &error))?;
    }
    fs::write(path, content).map_err(|error| at_path(path, &error))
}

fn hash(text: &str) -> u64 {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

pub(crate) fn at_path(path: &Path, error: &dyn std::fmt::Display) -> String {
    format!("{}: {error}", path.display())
}

/// The room of the switch.
const MAX_MUTANTS: u32 = 1 << 16;
