//! Which lines are the units of work, and how do they become what a work is done on?

use std::hint::black_box;
use std::ops::Range;
use std::time::Instant;

use super::{CHUNK, Codec};
use crate::files::read;
use crate::protocol::{each_guarded, guarded};
use crate::{Parts, Refusal, Size};

/// What is given to the work of a line, or why there is nothing.
pub(super) type Given<T> = Result<T, Refusal>;

/// Lines that belong together.
pub(super) struct Group<T> {
    pub(super) name: String,
    pub(super) units: Vec<Given<T>>,
}

/// Reads files without groups.
pub(super) fn load<T>(
    files: &[&str],
    make: impl FnMut(&str) -> Given<T>,
) -> Result<(Vec<Given<T>>, Size), String> {
    let (groups, size) = load_groups(files, make)?;
    Ok((groups.into_iter().flat_map(|group| group.units).collect(), size))
}

/// Reads files in which a line that starts with `#` names the group of the lines behind it.
pub(super) fn load_groups<T>(
    files: &[&str],
    mut make: impl FnMut(&str) -> Given<T>,
) -> Result<(Vec<Group<T>>, Size), String> {
    let mut groups = Vec::new();
    let mut size = Size { units: 0, bytes: 0 };
    for path in files {
        let file = String::from_utf8(read(path)?).map_err(|error| format!("{path}: {error}"))?;
        for line in file.split_terminator('\n') {
            if let Some(name) = line.strip_prefix('#') {
                groups.push(Group { name: name.to_owned(), units: Vec::new() });
                continue;
            }
            if groups.is_empty() {
                groups.push(Group { name: String::new(), units: Vec::new() });
            }
            size = Size { units: size.units + 1, bytes: size.bytes + line.len() };
            groups.last_mut().expect("one was just made").units.push(guarded(|| make(line)));
        }
    }
    Ok((groups, size))
}

/// Events as a codec wrote them, one behind the other.
pub(super) struct Encoded {
    bytes: Vec<u8>,
    // Each lies within `bytes`.
    pub(super) groups: Vec<Group<Range<usize>>>,
    pub(super) size: Size,
}

impl Encoded {
    /// Reads files, with groups or without.
    pub(super) fn load<C: Codec>(files: &[&str]) -> Result<Self, String> {
        let (mut bytes, mut event) = (Vec::new(), Vec::new());
        let (groups, size) = load_groups(files, |line| {
            event.clear();
            C::encode(&C::parse(line)?, &mut event)?;
            bytes.extend_from_slice(&event);
            Ok(bytes.len() - event.len()..bytes.len())
        })?;
        Ok(Encoded { bytes, groups, size })
    }

    /// The events in all groups.
    pub(super) fn events(&self) -> impl Iterator<Item = &Given<Range<usize>>> {
        self.groups.iter().flat_map(|group| &group.units)
    }

    /// The bytes of an event, or why there are none.
    pub(super) fn bytes_of(&self, event: &Given<Range<usize>>) -> Result<&[u8], Refusal> {
        Ok(&self.bytes[given(event)?.clone()])
    }

    /// Does the work of each event that there is.
    pub(super) fn each<'a, T>(
        &'a self,
        events: &[Given<Range<usize>>],
        work: impl Fn(&'a [u8]) -> Result<T, Refusal>,
    ) {
        each_guarded(events, |event| {
            let Ok(range) = event else { return };
            let _ = black_box(work(&self.bytes[range.clone()]));
        });
    }

    /// Does the work of all events, uncounted and untimed.
    pub(super) fn each_of_all<'a, T>(&'a self, work: impl Fn(&'a [u8]) -> Result<T, Refusal>) {
        self.groups.iter().for_each(|group| self.each(&group.units, &work));
    }

    /// Does the work of each event that there is, chunk by chunk, and answers how long each took.
    pub(super) fn each_timed<'a, T>(
        &'a self,
        work: impl Fn(&'a [u8]) -> Result<T, Refusal>,
    ) -> Parts {
        let timed = |chunk| {
            let start = Instant::now();
            self.each(chunk, &work);
            start.elapsed().as_nanos() as u64
        };
        let chunks = self.groups.iter().flat_map(|group| group.units.chunks(CHUNK));
        Parts { chunks_ns: chunks.map(timed).collect(), ..Parts::default() }
    }
}

/// What was given, or the refusal once more.
pub(super) fn given<T>(unit: &Given<T>) -> Result<&T, Refusal> {
    unit.as_ref().map_err(|refusal| refusal.to_string().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_on_lf_only_and_groups_are_no_units() {
        let path = crate::files::scratch("groups");
        std::fs::write(&path, "#kind-1\none\rone\ntwo\u{2028}two\n#kind-7\n").unwrap();
        let (groups, size) =
            load_groups(&[path.to_str().unwrap()], |line| Ok(line.to_owned())).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!((size.units, size.bytes), (2, 7 + 9));
        let [first, second] = &groups[..] else { panic!("{} groups", groups.len()) };
        assert_eq!((first.name.as_str(), second.name.as_str()), ("kind-1", "kind-7"));
        assert_eq!(given(&first.units[0]).unwrap(), "one\rone");
        assert!(second.units.is_empty());
    }
}
