//! Responses with a repository archive, subject to the faults of repositories.

use std::io::{self, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::{Stream, StreamExt, stream};
use hyper::header::{ACCEPT_ENCODING, CONTENT_ENCODING};

use super::fault::Fault;
use super::http::{self, HttpRequest, HttpResponse};
use super::network::NetworkState;
use super::spec::Server;
use crate::block::{IN_MEMORY, archive};

/// The content type of an archive.
pub(super) const CAR: &str = "application/vnd.ipld.car";

/// The content type of a blob.
pub(super) const BLOB: &str = "image/jpeg";

type Pieces = Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>;

/// The coding of an archive on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    /// None.
    Identity,
    /// Compressed with gzip.
    Gzip,
}

impl Coding {
    /// The coding that a request asks for.
    pub(super) fn of(request: &HttpRequest) -> Self {
        let accepted = request.headers().get_all(ACCEPT_ENCODING).into_iter();
        let mut names =
            accepted.filter_map(|value| value.to_str().ok()).flat_map(|text| text.split(','));
        if names.any(|name| name.trim() == GZIP) { Self::Gzip } else { Self::Identity }
    }

    fn encode(self, archive: Bytes) -> Bytes {
        match self {
            Self::Identity => archive,
            Self::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
                encoder.write_all(&archive).expect(IN_MEMORY);
                encoder.finish().expect(IN_MEMORY).into()
            }
        }
    }

    fn label(self, response: HttpResponse) -> HttpResponse {
        match self {
            Self::Identity => response,
            Self::Gzip => http::with_header(response, CONTENT_ENCODING, GZIP),
        }
    }
}

/// The response with an archive in this coding, altered by the enabled faults.
pub(super) fn response(
    network: &Arc<NetworkState>,
    server: Server,
    archive: Bytes,
    coding: Coding,
) -> HttpResponse {
    if let Some(zeros_mib) = network.faults.inject(server, Fault::BombRepo) {
        return Coding::Gzip.label(http::streamed(CAR, bomb(archive, zeros_mib)));
    }
    if network.faults.inject(server, Fault::EndlessRepo).is_some() {
        let block = stream::repeat_with(|| Ok(filler()));
        return http::streamed(CAR, at_once(archive).chain(block));
    }
    coding.label(http::streamed(CAR, pieces(network, server, coding.encode(archive))))
}

/// The response with an archive and then zeros without an end, slowly.
pub(super) fn slow_endless_response(archive: Bytes) -> HttpResponse {
    let zeros = std::iter::repeat_with(|| Bytes::from_static(&[0; SLOW_PIECE_LEN]));
    let pieces = split(archive, SLOW_PIECE_LEN).chain(zeros);
    http::streamed(CAR, paced(pieces, SLOW_HOST_PAUSE))
}

/// The response whose connection ends before the last byte of a content.
pub(super) fn cut_response(content: Vec<u8>) -> HttpResponse {
    let cut = stream::once(async { Err(io::ErrorKind::ConnectionReset.into()) });
    let content = Bytes::from(content);
    http::streamed(BLOB, at_once(beginning(&content, u64::MAX)).chain(cut))
}

/// A gzip stream of the archive and then this many MiB of zeros, a thousandth of that in size.
fn bomb(archive: Bytes, zeros_mib: u64) -> Pieces {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let mut left = zeros_mib;
    let first = compressed(&mut encoder, &archive);
    let zeros = std::iter::from_fn(move || {
        left = left.checked_sub(1)?;
        Some(compressed(&mut encoder, &vec![0; 1 << 20]))
    });
    Box::pin(stream::iter(std::iter::once(first).chain(zeros)).map(Ok))
}

fn compressed(encoder: &mut GzEncoder<Vec<u8>>, data: &[u8]) -> Bytes {
    let written = encoder.write_all(data).and_then(|()| encoder.flush());
    written.expect(IN_MEMORY);
    std::mem::take(encoder.get_mut()).into()
}

fn pieces(network: &Arc<NetworkState>, server: Server, archive: Bytes) -> Pieces {
    let due = |fault| network.faults.due(server, fault);
    let counted = |fault| {
        let network = network.clone();
        move || network.faults.count(server, fault)
    };
    if let Some(pause_ms) = due(Fault::SlowRepo) {
        counted(Fault::SlowRepo)();
        return slowly(archive, Duration::from_millis(pause_ms));
    }
    if let Some(bytes) = due(Fault::CutRepo) {
        let count = counted(Fault::CutRepo);
        let cut = stream::once(async move {
            count();
            Err(io::ErrorKind::ConnectionReset.into())
        });
        return Box::pin(at_once(beginning(&archive, bytes)).chain(cut));
    }
    if let Some(bytes) = due(Fault::StalledRepo) {
        let count = counted(Fault::StalledRepo);
        let stall = stream::once(async move {
            count();
            std::future::pending().await
        });
        return Box::pin(at_once(beginning(&archive, bytes)).chain(stall));
    }
    Box::pin(at_once(archive))
}

/// The first `bytes` bytes, at least one byte less than all.
fn beginning(archive: &Bytes, bytes: u64) -> Bytes {
    let max = archive.len().saturating_sub(1);
    archive.slice(..usize::try_from(bytes).map_or(max, |bytes| bytes.min(max)))
}

fn at_once(archive: Bytes) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    stream::iter(split(archive, PIECE_LEN)).map(Ok)
}

fn slowly(archive: Bytes, pause: Duration) -> Pieces {
    paced(split(archive, SLOW_PIECE_LEN), pause)
}

fn paced(pieces: impl Iterator<Item = Bytes> + Send + 'static, pause: Duration) -> Pieces {
    Box::pin(stream::iter(pieces).then(move |piece| async move {
        tokio::time::sleep(pause).await;
        Ok(piece)
    }))
}

fn split(mut archive: Bytes, len: usize) -> impl Iterator<Item = Bytes> {
    std::iter::from_fn(move || {
        let len = len.min(archive.len());
        (len > 0).then(|| archive.split_to(len))
    })
}

/// A section of an archive: a block of zeros and its CID.
fn filler() -> Bytes {
    static FILLER: std::sync::LazyLock<Bytes> = std::sync::LazyLock::new(|| {
        let data = vec![0; FILLER_LEN];
        let cid = codec::Cid::of(codec::cid::Codec::Raw, &data);
        let with_header = archive(&[], [(&cid, &data[..])]);
        let header = archive(&[], []);
        with_header[header.len()..].to_vec().into()
    });
    FILLER.clone()
}

const GZIP: &str = "gzip";

const PIECE_LEN: usize = 64 << 10;
const SLOW_PIECE_LEN: usize = 256;
/// 256 bytes at a time, this makes 1,200 bytes a second.
const SLOW_HOST_PAUSE: Duration = Duration::from_micros(213_333);
const FILLER_LEN: usize = 60_000;
