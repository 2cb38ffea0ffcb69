//! Where does it all come from? A feed, or what a test says.

use futures_util::FutureExt;

use super::feed::{Feed, Item};
use super::run::RunError;

/// Tells what comes.
pub(super) trait Source {
    /// The next thing, when there is one. Who gives up waiting has lost nothing.
    async fn next(&mut self) -> Result<Item, RunError>;

    /// The next thing, if it is there.
    fn try_next(&mut self) -> Result<Option<Item>, RunError>;

    /// Nobody will ask any more.
    async fn close(self);
}

impl Source for Feed {
    async fn next(&mut self) -> Result<Item, RunError> {
        Ok(Feed::next(self).await?)
    }

    fn try_next(&mut self) -> Result<Option<Item>, RunError> {
        Ok(Feed::next(self).now_or_never().transpose()?)
    }

    async fn close(self) {
        Feed::close(self).await;
    }
}
