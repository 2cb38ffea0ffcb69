//! The events of `--have`, which are not fetched again.

use bumpalo::Bump;
use nostr::negentropy::{Item, Items};
use nostr::{Event, Filter, IdSerialization, verify_many_with};
use nostr_files::{Group, InputError, RawGroup};

use super::super::failure::of_input;
use super::args::NostrFollowArgs;
use crate::failure::Failure;
use crate::{batch, files, in_order, standard_streams};
use follower::Status;

impl NostrFollowArgs {
    /// The valid events of the files of `--have` that match; `None` if ids are not compared.
    pub(super) fn known(&self, filter: &Filter, status: &Status) -> Result<Option<Items>, Failure> {
        if !self.compares() {
            return Ok(None);
        }
        for _ in self.have.iter().filter(|file| files::is_standard_stream(file)) {
            standard_streams::stdin()?;
        }
        let input = super::super::input(&self.have, None, None).map_err(of_input)?;
        let (ids, threads) = (self.ids, batch::threads(self.jobs));
        let worker = || {
            let mut arena = Bump::new();
            move |group| items_of(group, &mut arena, filter, ids)
        };
        let (mut items, mut refused) = (Vec::new(), 0);
        in_order::run(input.groups(), threads, worker, |found: Result<Found, Failure>| {
            let found = found?;
            items.extend(found.items);
            refused += found.refused;
            if items.len() > MAX_KNOWN {
                Err(Failure::Usage(format!(
                    "--have: more than {MAX_KNOWN} events match: add a filter, such as --since"
                )))
            } else {
                Ok(())
            }
        })?;
        let items = Items::from_iter(items);
        if refused > 0 {
            status.print_warning(&format!(
                "--have: events that are not valid and do not count: {refused}"
            ));
        }
        status.print(&format!("--have: {} events", items.len()));
        Ok(Some(items))
    }
}

/// The items of entries that were read together.
struct Found {
    items: Vec<Item>,
    refused: u64,
}

fn items_of(
    group: Result<(&std::path::Path, RawGroup), InputError>,
    arena: &mut Bump,
    filter: &Filter,
    ids: IdSerialization,
) -> Result<Found, Failure> {
    arena.reset();
    let (file, raw) = group.map_err(of_input)?;
    let Group { entries, .. } = Group::decode(file, &raw, arena).map_err(of_input)?;
    let events: Vec<Event<'_>> = entries.iter().flat_map(|entry| entry.event).collect();
    let unreadable = (entries.len() - events.len()) as u64;
    let matching: Vec<Event<'_>> =
        events.into_iter().filter(|event| filter.matches(event)).collect();
    let verdicts = verify_many_with(&matching, ids);
    let valid = matching.iter().zip(&verdicts).filter(|(_, verdict)| verdict.is_ok());
    let item = |(event, _): (&Event<'_>, _)| {
        // A relay compares no times before 1970.
        let created_at = u64::try_from(event.created_at).ok()?;
        Some(Item { created_at, id: event.id })
    };
    let items: Vec<Item> = valid.filter_map(item).collect();
    let invalid = verdicts.iter().filter(|verdict| verdict.is_err()).count() as u64;
    Ok(Found { items, refused: unreadable + invalid })
}

/// Maximum number of known events: 400 MB.
const MAX_KNOWN: usize = 10_000_000;
