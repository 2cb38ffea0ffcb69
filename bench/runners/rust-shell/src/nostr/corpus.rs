//! Reads the lines of events and encodes them at load.

use std::hint::black_box;
use std::ops::Range;
use std::time::Instant;

use protocol::{BoxError, CHUNK_UNITS, Loaded, Parts};

use super::Codec;
use crate::files::read;
use crate::{catch_panic, catch_panics};

/// The prepared input of a unit, or the reason why it could not be prepared.
pub(super) type Prepared<T> = Result<T, BoxError>;

/// The units with one group name.
pub(super) struct Group<T> {
    pub(super) name: String,
    pub(super) units: Vec<Prepared<T>>,
}

/// Reads files without groups.
pub(super) fn load<T>(
    files: &[&str],
    make: impl FnMut(&str) -> Prepared<T>,
) -> Result<(Vec<Prepared<T>>, Loaded), BoxError> {
    let (groups, loaded) = load_groups(files, make)?;
    Ok((groups.into_iter().flat_map(|group| group.units).collect(), loaded))
}

/// Reads files in which a line that starts with `#` names the group of the lines after it.
pub(super) fn load_groups<T>(
    files: &[&str],
    mut make: impl FnMut(&str) -> Prepared<T>,
) -> Result<(Vec<Group<T>>, Loaded), BoxError> {
    let (mut groups, mut lens) = (Vec::new(), Vec::new());
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
            lens.push(line.len());
            let unit = catch_panic(|| make(line));
            groups.last_mut().expect("there is a group").units.push(unit);
        }
    }
    Ok((groups, Loaded::of(lens)))
}

/// Events encoded by a codec, one after the other in one buffer.
pub(super) struct Encoded {
    bytes: Vec<u8>,
    /// All lie within `bytes`.
    pub(super) groups: Vec<Group<Range<usize>>>,
    pub(super) loaded: Loaded,
}

impl Encoded {
    /// Reads files, with groups or without.
    pub(super) fn load<C: Codec>(files: &[&str]) -> Result<Self, BoxError> {
        let (mut bytes, mut event) = (Vec::new(), Vec::new());
        let (groups, loaded) = load_groups(files, |line| {
            event.clear();
            C::encode(&C::parse(line)?, &mut event)?;
            bytes.extend_from_slice(&event);
            Ok(bytes.len() - event.len()..bytes.len())
        })?;
        Ok(Encoded { bytes, groups, loaded })
    }

    /// The events in all groups.
    pub(super) fn events(&self) -> impl Iterator<Item = &Prepared<Range<usize>>> {
        self.groups.iter().flat_map(|group| &group.units)
    }

    /// The bytes of an event, or why it could not be encoded.
    pub(super) fn bytes_of(&self, event: &Prepared<Range<usize>>) -> Result<&[u8], BoxError> {
        Ok(&self.bytes[prepared(event)?.clone()])
    }

    /// Does the work of all encoded events.
    pub(super) fn each<'a, T>(
        &'a self,
        events: &[Prepared<Range<usize>>],
        work: impl Fn(&'a [u8]) -> Result<T, BoxError>,
    ) {
        catch_panics(events, |event| {
            let Ok(range) = event else { return };
            let _ = black_box(work(&self.bytes[range.clone()]));
        });
    }

    /// Does the work of all events, uncounted and untimed.
    pub(super) fn each_of_all<'a, T>(&'a self, work: impl Fn(&'a [u8]) -> Result<T, BoxError>) {
        self.groups.iter().for_each(|group| self.each(&group.units, &work));
    }

    /// Does the work of all encoded events and times the chunks.
    pub(super) fn each_timed<'a, T>(
        &'a self,
        work: impl Fn(&'a [u8]) -> Result<T, BoxError>,
    ) -> Parts {
        let timed = |chunk| {
            let start = Instant::now();
            self.each(chunk, &work);
            start.elapsed().as_nanos() as u64
        };
        let chunks = self.groups.iter().flat_map(|group| group.units.chunks(CHUNK_UNITS));
        Parts { chunks_ns: chunks.map(timed).collect(), ..Parts::default() }
    }
}

/// The prepared unit, or its error again.
pub(super) fn prepared<T>(unit: &Prepared<T>) -> Result<&T, BoxError> {
    unit.as_ref().map_err(|error| error.to_string().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_on_lf_only_and_groups_are_no_units() {
        let path = crate::files::scratch("groups");
        std::fs::write(&path, "#kind-1\none\rone\ntwo\u{2028}two\n#kind-7\n").unwrap();
        let (groups, loaded) =
            load_groups(&[path.to_str().unwrap()], |line| Ok(line.to_owned())).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(loaded, Loaded { units: 2, bytes: 7 + 9 });
        let [first, second] = &groups[..] else { panic!("{} groups", groups.len()) };
        assert_eq!((first.name.as_str(), second.name.as_str()), ("kind-1", "kind-7"));
        assert_eq!(prepared(&first.units[0]).unwrap(), "one\rone");
        assert!(second.units.is_empty());
    }
}
