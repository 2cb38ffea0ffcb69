//! How do we encode and decode Nostr events when measured? Each format by the calls that any caller has,
//! over one arena that is reset between events.

mod batches;
mod clock;
mod decode;
mod encode;
mod encoded;
mod fields;
mod groups;
mod in_order;
mod validate;

use bumpalo::Bump;
use wireproof::nostr::Event;
use wireproof::nostr::formats::Format;

use super::{Variant, Work};
use crate::Task;
use crate::corpora::nostr::{self, Asked, Group};
use crate::protocol::Loaded;

/// The variants by name, each with the checks that its measured path makes.
pub(super) fn variants(task: Task) -> Vec<Variant> {
    let plain = |format: &Format| vec![format.name().to_owned()];
    let names = |format: &Format| match task {
        Task::NostrFields => Asked::ALL.map(|it| format!("{}/{}", format.name(), it.name())).into(),
        Task::NostrValidated => vec![format.name().to_owned(), format!("{}/batch", format.name())],
        Task::NostrSize => Vec::new(),
        _ => plain(format),
    };
    let checks = match task {
        Task::NostrSerialize => NO_CHECKS,
        Task::NostrFields => FIELD_CHECKS,
        Task::NostrValidated => VALIDATE_CHECKS,
        _ => DECODE_CHECKS,
    };
    Format::ALL.iter().flat_map(names).map(|name| (name, checks)).collect()
}

/// Makes ready for `variant`; `None` if there is no such one.
pub(super) fn open<'f>(
    task: Task,
    variant: &str,
    files: &'f [Vec<u8>],
    arena: &'f Bump,
) -> Result<Option<Box<dyn Work + 'f>>, String> {
    let (name, way) = variant.split_once('/').unwrap_or((variant, ""));
    let Some(format) = Format::from_name(name) else { return Ok(None) };
    let corpus = Corpus::read(files, arena)?;
    Ok(match (task, way) {
        (Task::NostrSerialize, "") => Some(Box::new(encode::Encode::new(format, &corpus, arena))),
        (Task::NostrDeserialize, "") => Some(Box::new(decode::Decode::new(format, &corpus)?)),
        (Task::NostrValidated, "") => Some(Box::new(validate::Alone::new(format, &corpus)?)),
        (Task::NostrValidated, "batch") => Some(Box::new(validate::Many::new(format, &corpus)?)),
        (Task::NostrByKind | Task::NostrByCategory, "") => {
            Some(Box::new(groups::Groups::new(format, &corpus)?))
        }
        (Task::NostrBatch, "") => Some(Box::new(batches::Batches::new(format, &corpus)?)),
        (Task::NostrFields, way) => {
            match Asked::ALL.into_iter().find(|asked| asked.name() == way) {
                Some(asked) => Some(Box::new(fields::Fields::new(format, asked, &corpus)?)),
                None => None,
            }
        }
        _ => None,
    })
}

/// The events of a corpus, in the type that we decode to.
struct Corpus<'f> {
    groups: Vec<Group<'f>>,
    events: Vec<Event<'f>>,
}

impl<'f> Corpus<'f> {
    fn read(files: &'f [Vec<u8>], arena: &'f Bump) -> Result<Self, String> {
        let [file] = files else { return Err("not one file of events".to_owned()) };
        let groups = nostr::groups(file).ok_or("not lines of UTF-8")?;
        let events = nostr::events(&groups, arena).map_err(|fault| fault.to_string())?;
        Ok(Self { groups, events })
    }

    fn loaded(&self) -> Loaded {
        let lines = self.groups.iter().flat_map(|group| &group.lines);
        let bytes = lines.map(|line| line.len() as u64).sum();
        Loaded { units: self.events.len() as u64, bytes }
    }
}

const NO_CHECKS: &[&str] = &[];
const FIELD_CHECKS: &[&str] = &["kind-range"];
const DECODE_CHECKS: &[&str] = &[
    "utf8",
    "trailing-bytes",
    "hex-lower",
    "kind-range",
    "duplicate-fields",
    "minimal-heads",
    "limits",
];
const VALIDATE_CHECKS: &[&str] = &[
    "utf8",
    "trailing-bytes",
    "hex-lower",
    "kind-range",
    "duplicate-fields",
    "minimal-heads",
    "limits",
    "id",
    "signature",
];
