//! Bodies of answers, which are handed over in parts: a large one keeps its place among the large answers until its client has
//! taken it.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use net::client_places::ClientPlace;

/// The body of an answer.
#[derive(Debug, Default)]
pub(crate) struct AnswerBody {
    rest: Bytes,
    /// Held until the last part.
    _place: Option<ClientPlace>,
}

impl AnswerBody {
    pub(crate) fn new(bytes: Bytes, place: Option<ClientPlace>) -> Self {
        Self { rest: bytes, _place: place }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let len = PART_BYTES.min(self.rest.len());
        let part = self.rest.split_to(len);
        Poll::Ready((!part.is_empty()).then(|| Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}

/// Size of a part in bytes.
const PART_BYTES: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http_body_util::BodyExt;
    use net::client_places::ClientPlaces;
    use net::server_places::PeerAddress;

    use super::*;

    #[tokio::test]
    async fn a_large_body_is_handed_over_in_parts_and_frees_its_place_at_the_end() {
        let places = ClientPlaces::with_address_limit(8, 1, Duration::from_secs(60));
        let take = || places.take(PeerAddress::UNIX_SOCKET);
        let bytes: Bytes = (0..200_000_u32).map(|byte| byte as u8).collect();
        let mut body = AnswerBody::new(bytes.clone(), take());
        assert_eq!(body.size_hint().exact(), Some(200_000));
        assert!(take().is_none());
        let mut parts = Vec::new();
        while let Some(Ok(frame)) = body.frame().await {
            parts.push(frame.into_data().unwrap());
        }
        assert!(body.is_end_stream() && parts.iter().all(|part| part.len() <= PART_BYTES));
        assert_eq!((parts.len(), parts.concat()), (4, bytes.to_vec()));
        drop(body);
        assert!(take().is_some());
    }
}
