//! Arguments that name many inputs: the arguments themselves, folders of archives, and lists.
//!
//! | argument | inputs |
//! |---|---|
//! | a folder, where archives are expected | its files that end in `.car`, sorted by name |
//! | `@FILE` | one a line of the file, folders too; empty lines and lines that begin with `#` are skipped |
//! | `@-` | one a line of standard input |
//! | `-` | where names are expected, as `@-` |
//! | any other | itself |

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::iter;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::files;
use crate::standard_streams;

/// Inputs in the order of the arguments. Lists are read as they are needed.
pub struct Inputs<'a> {
    arguments: &'a [String],
    kind: InputKind,
    /// The inputs of the argument before `arguments`.
    current: Option<BoxedInputs>,
}

/// An input, or why an argument names none.
pub type Input = Result<NamedInput, Failure>;

type BoxedInputs = Box<dyn Iterator<Item = Input> + Send>;

/// An input.
#[derive(Debug)]
pub struct NamedInput {
    /// The path, handle or DID.
    pub name: String,
    /// The line of the list that names it, for messages; empty for an argument.
    pub origin: String,
}

/// The kinds of inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputKind {
    /// Files, or folders of them.
    Archives,
    /// Handles and DIDs.
    Names,
}

impl<'a> Inputs<'a> {
    /// The inputs that arguments name.
    pub fn new(arguments: &'a [String], kind: InputKind) -> Self {
        Self { arguments, kind, current: None }
    }

    /// The one input, if the arguments name no more than one in any case.
    pub fn single(&self) -> Option<&'a str> {
        match self.arguments {
            [argument] if self.list(argument).is_none() && !self.kind.is_folder(argument) => {
                Some(argument)
            }
            _ => None,
        }
    }

    /// The file of an argument that is a list.
    fn list<'t>(&self, argument: &'t str) -> Option<&'t str> {
        match argument.strip_prefix('@') {
            None if argument == "-" && self.kind == InputKind::Names => Some("-"),
            file => file,
        }
    }

    fn expand(&self, argument: &str) -> BoxedInputs {
        match self.list(argument) {
            Some(file) => match read_list(file, self.kind) {
                Ok(lines) => Box::new(lines),
                Err(failure) => Box::new(iter::once(Err(failure))),
            },
            None => self.kind.expand(argument, String::new()),
        }
    }
}

impl Iterator for Inputs<'_> {
    type Item = Input;

    fn next(&mut self) -> Option<Input> {
        loop {
            if let Some(input) = self.current.as_mut().and_then(Iterator::next) {
                return Some(input);
            }
            let (argument, rest) = self.arguments.split_first()?;
            self.current = Some(self.expand(argument));
            self.arguments = rest;
        }
    }
}

impl InputKind {
    fn is_folder(self, name: &str) -> bool {
        self == Self::Archives && Path::new(name).is_dir()
    }

    /// The archives in a folder, or the input itself if it is none.
    fn expand(self, name: &str, origin: String) -> BoxedInputs {
        if !self.is_folder(name) {
            return Box::new(iter::once(Ok(NamedInput { name: name.to_owned(), origin })));
        }
        match archives(Path::new(name)) {
            Ok(paths) => Box::new(paths.into_iter().map(move |path| named(path, &origin))),
            Err(failure) => Box::new(iter::once(Err(failure.after(&origin)))),
        }
    }
}

fn named(path: PathBuf, origin: &str) -> Input {
    match path.into_os_string().into_string() {
        Ok(name) => Ok(NamedInput { name, origin: origin.to_owned() }),
        Err(name) => {
            let path = Path::new(&name).display();
            Err(Failure::Usage(format!("{origin}{path}: the name of the file is not UTF-8")))
        }
    }
}

/// The archives in a folder, sorted.
fn archives(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let read = || {
        let paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
        paths.collect::<io::Result<Vec<PathBuf>>>()
    };
    let mut paths = read().map_err(Failure::file(folder))?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "car"));
    paths.sort();
    if paths.is_empty() {
        Err(Failure::Usage(format!("{}: no .car file in the folder", folder.display())))
    } else {
        Ok(paths)
    }
}

/// The inputs that the lines of a file name.
fn read_list(
    file: &str,
    kind: InputKind,
) -> Result<impl Iterator<Item = Input> + Send + use<>, Failure> {
    let path = Path::new(file);
    let source: Box<dyn Read + Send> = match file {
        "-" => Box::new(standard_streams::stdin()?),
        _ => Box::new(File::open(path).map_err(Failure::file(path))?),
    };
    let (mut lines, mut number) = (BufReader::new(source), 0);
    let (name, mut is_over) = (files::name(path), false);
    let next = move || -> Option<BoxedInputs> {
        while !is_over {
            number += 1;
            let origin = format!("{name}:{number}: ");
            match read_line(&mut lines) {
                Ok(None) => is_over = true,
                Ok(Some(line)) if line.is_empty() || line.starts_with('#') => {}
                Ok(Some(line)) => return Some(kind.expand(&line, origin)),
                Err(error) => {
                    is_over = true;
                    let failure = Failure::Usage(format!("{origin}{error}"));
                    return Some(Box::new(iter::once(Err(failure))));
                }
            }
        }
        None
    };
    Ok(iter::from_fn(next).flatten())
}

/// The next line without the spaces around it; `None` at the end.
fn read_line(lines: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    lines.take(MAX_LINE_BYTES + 1).read_until(b'\n', &mut line)?;
    let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
    if line.len() as u64 > MAX_LINE_BYTES {
        return Err(invalid(format!("a line of more than {MAX_LINE_BYTES} bytes")));
    }
    if line.is_empty() {
        return Ok(None);
    }
    let line =
        String::from_utf8(line).map_err(|_| invalid("a line that is not UTF-8".to_owned()))?;
    Ok(Some(line.trim().to_owned()))
}

/// Maximum length of a line in a list.
const MAX_LINE_BYTES: u64 = 8 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(arguments: &[&str]) -> Vec<Result<String, String>> {
        let arguments: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
        let inputs = Inputs::new(&arguments, InputKind::Archives);
        inputs
            .map(|input| match input {
                Ok(NamedInput { name, origin }) => Ok(format!("{origin}{name}")),
                Err(failure) => Err(failure.message().unwrap_or_default().to_owned()),
            })
            .collect()
    }

    #[test]
    fn folders_and_lists_are_expanded_in_the_order_of_the_arguments() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        for name in ["b.car", "a.car", "c.txt"] {
            fs::write(path(name), "").unwrap();
        }
        fs::create_dir(path("empty")).unwrap();
        let list = path("list");
        let all = folder.path().to_str().unwrap();
        fs::write(&list, format!("# names\n\n ada.test \n{all}\n{}\nlast", path("empty"))).unwrap();
        let expected = [
            Ok("first".to_owned()),
            Ok(format!("{list}:3: ada.test")),
            Ok(format!("{list}:4: {}", path("a.car"))),
            Ok(format!("{list}:4: {}", path("b.car"))),
            Err(format!("{list}:5: {}: no .car file in the folder", path("empty"))),
            Ok(format!("{list}:6: last")),
            Ok(path("a.car")),
            Ok(path("b.car")),
            Ok("-".to_owned()),
        ];
        assert_eq!(inputs(&["first", &format!("@{list}"), all, "-"]), expected);
    }

    #[test]
    fn a_list_that_is_missing_or_has_a_bad_line_is_a_failure_in_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("list").to_str().unwrap().to_owned();
        fs::write(&list, [&b"good\n\xff\n"[..], b"never"].concat()).unwrap();
        let found = inputs(&[&format!("@{list}"), "after", "@/no/such/list"]);
        assert_eq!(found[0], Ok(format!("{list}:1: good")));
        assert_eq!(found[1], Err(format!("{list}:2: a line that is not UTF-8")));
        assert_eq!(found[2], Ok("after".to_owned()));
        assert!(found[3].as_ref().is_err_and(|message| message.starts_with("/no/such/list: ")));
        fs::write(&list, "x".repeat(10_000)).unwrap();
        assert_eq!(inputs(&[&format!("@{list}")]).len(), 1);
    }

    #[test]
    fn one_argument_is_single_unless_it_is_a_folder_or_a_list() {
        let single = |arguments: &[&str], kind| {
            let arguments: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
            Inputs::new(&arguments, kind).single().map(str::to_owned)
        };
        assert_eq!(single(&["a.car"], InputKind::Archives).as_deref(), Some("a.car"));
        assert_eq!(single(&["-"], InputKind::Archives).as_deref(), Some("-"));
        assert_eq!(single(&["-"], InputKind::Names), None);
        assert_eq!(single(&["@list"], InputKind::Archives), None);
        assert_eq!(single(&["a", "b"], InputKind::Archives), None);
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().to_str().unwrap();
        assert_eq!(single(&[folder], InputKind::Archives), None);
        assert_eq!(single(&[folder], InputKind::Names).as_deref(), Some(folder));
    }
}
