//! Rules of frames, and the error that names the broken one.

use codec::car::{CarError, CarFault};
use codec::cbor::{DecodeError, Reason};

/// A broken rule of a frame, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at byte {offset} of the frame: {fault}")]
pub struct FrameError {
    /// Bytes from the start of the frame to the part that breaks the rule.
    pub offset: usize,
    /// The broken rule.
    pub fault: FrameFault,
}

/// A rule of the event stream or of a format inside it, or a limit of [`Options`](super::Options).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameFault {
    /// Header or payload are not canonical, or a field is of the wrong kind.
    #[error("{0}")]
    Cbor(Reason),
    /// The CAR slice breaks a rule, or a block's hash is wrong.
    #[error("CAR slice: {0}")]
    Car(CarFault),
    /// A field that the message must have is absent.
    #[error("the field {0:?} is missing")]
    Missing(&'static str),
    /// A field has a value that the protocol does not allow.
    #[error("the field {0:?} has a value that is not allowed")]
    Field(&'static str),
    /// The frame is longer than the limit.
    #[error("a frame over the limit of {0} bytes")]
    FrameLimit(usize),
    /// The CAR slice is longer than the limit.
    #[error("a CAR slice over the limit of {0} bytes")]
    BlocksLimit(usize),
    /// The commit has more operations than the limit.
    #[error("more operations than the limit of {0}")]
    OpsLimit(usize),
    /// The message has more labels than the limit.
    #[error("more labels than the limit of {0}")]
    LabelsLimit(usize),
    /// A record is longer than the limit.
    #[error("a record over the limit of {0} bytes")]
    RecordLimit(usize),
}

impl FrameError {
    /// The fault of a CAR slice that starts at `car_at` in the frame.
    pub(super) fn in_car(error: CarError, car_at: usize) -> Self {
        let inside = usize::try_from(error.offset).expect("an offset inside a slice");
        Self { offset: car_at + inside, fault: FrameFault::Car(error.fault) }
    }
}

impl From<DecodeError> for FrameError {
    /// The fault of an item that was read with offsets counted from the start of the frame.
    #[cold]
    fn from(error: DecodeError) -> Self {
        Self { offset: error.offset, fault: FrameFault::Cbor(error.reason) }
    }
}

#[cold]
#[inline(never)]
pub(super) fn fail<T>(offset: usize, fault: FrameFault) -> Result<T, FrameError> {
    Err(FrameError { offset, fault })
}
