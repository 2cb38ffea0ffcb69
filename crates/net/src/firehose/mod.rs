//! What do relays and PDSs tell, in order and without a loss?
//!
//! | type | question it answers |
//! |---|---|
//! | [`Feed`] | what do one of several hosts' connections bring, one thing after the other? |
//! | [`Arrival`] | which frame came, from whom, about what? |
//! | [`Notice`] | what happened to the connection? |
//! | [`Sequence`] | does a number follow the one before? |
//! | [`Watermark`] | behind which event may the stream be left? |

mod arrival;
mod feed;
mod notice;
mod sequence;
mod watermark;

pub use arrival::{Arrival, Kind};
pub use feed::{Begin, Feed, FeedError, Item, Options, Origin};
pub use notice::Notice;
pub use sequence::{Sequence, Step};
pub use watermark::{Ticket, Watermark};
