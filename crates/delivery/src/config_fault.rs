//! Settings of a queue under which it cannot take events: every fault has a stable code, and its message names the setting, its
//! value and the remedy.

use crate::sink::{FailureKind, SendFailure};

/// A setting of a queue, or of this machine, under which events cannot be delivered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ConfigFault {
    /// A stream of NATS stores messages without acknowledging them.
    #[cfg(feature = "nats")]
    #[error(
        "the stream {0} has no_ack=true and acknowledges no message: set no_ack=false, or name another stream with ?stream=NAME"
    )]
    NoAck(String),
    /// A stream of NATS takes no messages any more.
    #[cfg(feature = "nats")]
    #[error(
        "the stream {0} has sealed=true, which cannot be undone, and accepts no messages: name another stream with ?stream=NAME"
    )]
    Sealed(String),
    /// A stream of NATS takes the messages of another one alone.
    #[cfg(feature = "nats")]
    #[error(
        "the stream {0} has mirror={1} and accepts no other messages: name that stream with ?stream={1}"
    )]
    Mirror(String, String),
    /// A stream of NATS takes counts alone.
    #[cfg(feature = "nats")]
    #[error(
        "the stream {0} has allow_msg_counter=true and accepts only counts: name another stream with ?stream=NAME"
    )]
    Counter(String),
    /// A stream of NATS takes other subjects.
    #[cfg(feature = "nats")]
    #[error(
        "the stream {0} does not take the subjects {1}: add them to it, or name another one with ?stream=NAME"
    )]
    Subjects(String, String),
    /// A stream of NATS is at a limit.
    #[cfg(feature = "nats")]
    #[error(
        "{0}: the stream {1} has discard=new and {2}: raise the limit, delete messages, or set discard=old, and delivery continues"
    )]
    Full(String, String, String),
    /// A server refuses the user an operation.
    #[cfg(feature = "nats")]
    #[error(
        "{0}: give the user of the URI the right to publish and to read the stream's information"
    )]
    Permission(String),
    /// A topic of Kafka takes only records that are smaller than events.
    #[cfg(feature = "kafka")]
    #[error(
        "the topic {0} has max.message.bytes={1}, less than any event needs: set it to 1048588, which is the default, or more"
    )]
    RecordSize(String, u64),
    /// A topic of Kafka demands more replicas than it has.
    #[cfg(feature = "kafka")]
    #[error(
        "the topic {0} has min.insync.replicas={1} and {2} replicas, with which a broker may store no record: lower the setting, or \
         add replicas"
    )]
    Replicas(String, u64, usize),
    /// A broker refuses the time of records.
    #[cfg(feature = "kafka")]
    #[error(
        "the broker refuses the time of the records: by the clock of this machine it is {now}, {offset}. Set the clocks, or raise \
         {settings} of the topic {topic}"
    )]
    Clock {
        /// The topic.
        topic: String,
        /// The time of this machine.
        now: String,
        /// How far it is from the time of the broker.
        offset: String,
        /// The settings, with their values.
        settings: String,
    },
}

impl ConfigFault {
    /// The stable name.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            #[cfg(feature = "nats")]
            Self::NoAck(_) => "nats/no-ack",
            #[cfg(feature = "nats")]
            Self::Sealed(_) => "nats/sealed",
            #[cfg(feature = "nats")]
            Self::Mirror(..) => "nats/mirror",
            #[cfg(feature = "nats")]
            Self::Counter(_) => "nats/counter",
            #[cfg(feature = "nats")]
            Self::Subjects(..) => "nats/subjects",
            #[cfg(feature = "nats")]
            Self::Full(..) => "nats/full",
            #[cfg(feature = "nats")]
            Self::Permission(_) => "nats/permission",
            #[cfg(feature = "kafka")]
            Self::RecordSize(..) => "kafka/record-size",
            #[cfg(feature = "kafka")]
            Self::Replicas(..) => "kafka/replicas",
            #[cfg(feature = "kafka")]
            Self::Clock { .. } => "kafka/clock",
        }
    }

    /// The failure of a batch, or of the start: while a run lasts, an operator may mend it, and the events wait.
    #[cold]
    pub(crate) fn failure(&self, is_running: bool) -> SendFailure {
        let kind = if is_running {
            FailureKind::Temporary(std::time::Duration::ZERO)
        } else {
            FailureKind::Fatal
        };
        SendFailure::new(kind, self.text())
    }

    /// The message with the code.
    pub(crate) fn text(&self) -> String {
        format!("{self} ({})", self.code())
    }
}

#[cfg(test)]
#[cfg(feature = "nats")]
mod tests {
    use super::*;

    #[test]
    fn a_fault_ends_the_start_and_waits_in_a_run_with_its_code() {
        let fault = ConfigFault::NoAck("events".to_owned());
        assert_eq!(fault.failure(false).kind, FailureKind::Fatal);
        let waiting = fault.failure(true);
        assert!(matches!(waiting.kind, FailureKind::Temporary(_)));
        assert!(
            waiting.reason.contains("no_ack=true") && waiting.reason.ends_with("(nats/no-ack)")
        );
    }
}
