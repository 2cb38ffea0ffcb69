//! Sends single events to a queue: events of an account one after the other, different accounts in parallel.

use std::collections::HashMap;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use crate::event::Event;
use crate::sink::{FailureKind, SendFailure};

/// Calls `send` for every event, after it has succeeded for the one before it of the same account. The first failure of
/// an account ends its chain, so an event that is accepted has no unaccepted one of its account before it.
///
/// # Errors
/// If not all events are accepted. Of several failures the one that asks for the longest wait is returned.
pub(crate) async fn send_in_chains<'e, F>(
    events: &'e [Event],
    send: impl Fn(&'e Event) -> F,
) -> Result<(), SendFailure>
where
    F: Future<Output = Result<(), SendFailure>>,
{
    let send = &send;
    let mut running: FuturesUnordered<_> =
        chains(events).into_iter().map(|chain| send_chain(chain, send)).collect();
    let (mut accepted, mut failed) = (Vec::with_capacity(events.len()), None::<SendFailure>);
    while let Some((of_chain, failure)) = running.next().await {
        accepted.extend(of_chain);
        if let Some(failure) = failure
            && failed.as_ref().is_none_or(|worst| rank(failure.kind) > rank(worst.kind))
        {
            failed = Some(failure);
        }
    }
    failed.map_or(Ok(()), |failure| Err(SendFailure { accepted, ..failure }))
}

/// The events by account, in their order.
fn chains(events: &[Event]) -> Vec<Vec<&Event>> {
    let (mut chains, mut places) = (Vec::<Vec<&Event>>::new(), HashMap::new());
    for event in events {
        let place = *places.entry(event.account()).or_insert(chains.len());
        match chains.get_mut(place) {
            Some(chain) => chain.push(event),
            None => chains.push(vec![event]),
        }
    }
    chains
}

/// Sends events one after the other. Returns the positions of accepted events, and the failure that ended it.
async fn send_chain<'e, F>(
    chain: Vec<&'e Event>,
    send: impl Fn(&'e Event) -> F,
) -> (Vec<u64>, Option<SendFailure>)
where
    F: Future<Output = Result<(), SendFailure>>,
{
    let mut accepted = Vec::with_capacity(chain.len());
    for event in chain {
        match send(event).await {
            Ok(()) => accepted.push(event.position()),
            Err(failure) => return (accepted, Some(failure)),
        }
    }
    (accepted, None)
}

fn rank(kind: FailureKind) -> u8 {
    match kind {
        FailureKind::Refused | FailureKind::Declined => 0,
        FailureKind::Temporary(_) => 1,
        FailureKind::Fatal => 2,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tokio::task::yield_now;

    use super::*;
    use crate::event::{EventId, NewEvent};

    fn events(count: u64) -> Vec<Event> {
        let event = |number: u64| {
            let did = format!("did:web:{}.test", number % 3);
            let id = EventId::of_commit(&did, &number.to_string());
            Event::stored(number + 1, &NewEvent::new(id, &did, "{}").unwrap())
        };
        (0..count).map(event).collect()
    }

    #[tokio::test]
    async fn an_event_is_sent_when_the_one_before_it_of_its_account_is_accepted() {
        let events = events(30);
        let (under_way, sent) = (Mutex::new(Vec::<String>::new()), Mutex::new(Vec::new()));
        let send = async |event: &Event| {
            let account = event.account().to_owned();
            assert!(!under_way.lock().unwrap().contains(&account), "{account} is being sent");
            under_way.lock().unwrap().push(account.clone());
            for _ in 0..event.position() % 5 {
                yield_now().await;
            }
            under_way.lock().unwrap().retain(|other| *other != account);
            sent.lock().unwrap().push(event.position());
            Ok(())
        };
        assert_eq!(send_in_chains(&events, send).await, Ok(()));
        let sent = sent.into_inner().unwrap();
        assert_eq!(sent.len(), 30);
        for account in 0..3 {
            let of_account = sent.iter().filter(|position| (**position - 1) % 3 == account);
            assert!(of_account.is_sorted(), "{sent:?}");
        }
    }

    #[tokio::test]
    async fn a_failure_ends_the_chain_of_its_account_and_no_other() {
        let events = events(12);
        // The second event of the second account is refused, the third one of the third finds no server.
        let send = async |event: &Event| match event.position() {
            5 => Err(SendFailure::new(FailureKind::Refused, "refused")),
            9 => Err(SendFailure::temporary("away")),
            _ => Ok(()),
        };
        let mut failure = send_in_chains(&events, send).await.unwrap_err();
        failure.accepted.sort_unstable();
        assert_eq!(failure.accepted, [1, 2, 3, 4, 6, 7, 10]);
        assert_eq!(failure.reason, "away", "the rest waits");
    }
}
