//! The methods of a hosted archive: `planSnapshot`, `listSegments`, `getSegment` and `getBlock`.

use std::collections::BTreeSet;
use std::sync::Arc;

use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, CONTENT_RANGE, ETAG, RANGE};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::fault::Fault;
use super::super::http::{self, HttpResponse, QueryParams, XrpcError, error};
use super::super::network::NetworkState;
use super::super::spec::{HostedArchive, Server};
use super::sealed::SealedArchive;
use crate::jetstream_segment::{SealedBlock, SealedSegment};

/// A request to the archive, with its body.
pub(in super::super) struct ArchiveRequest<'r> {
    pub(in super::super) path: &'r str,
    pub(in super::super) query: QueryParams,
    pub(in super::super) headers: &'r HeaderMap,
    pub(in super::super) body: &'r [u8],
}

/// The response of a method of the archive; `None` if the server has no such method.
pub(in super::super) fn response(
    network: &NetworkState,
    server: Server,
    request: &ArchiveRequest<'_>,
) -> Option<HttpResponse> {
    let method = request.path.strip_prefix("/xrpc/network.bsky.jetstream.")?;
    let endpoints = Endpoints { network, server, archive: SealedArchive::kept(network, server) };
    let answer = match method {
        "planSnapshot" => endpoints.authorized(request).and_then(|()| endpoints.plan(request.body)),
        "listSegments" => {
            endpoints.authorized(request).and_then(|()| endpoints.list(&request.query))
        }
        "getSegment" => endpoints.authorized(request).and_then(|()| endpoints.segment(request)),
        "getBlock" => endpoints.authorized(request).and_then(|()| endpoints.block(&request.query)),
        _ => return None,
    };
    Some(http::into_response(answer))
}

struct Endpoints<'n> {
    network: &'n NetworkState,
    server: Server,
    archive: Arc<SealedArchive>,
}

/// The body of `planSnapshot`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PlanInput {
    kinds: Vec<String>,
    dids: BTreeSet<String>,
    collections: Vec<String>,
    after_seq: u64,
    before_seq: Option<u64>,
}

impl PlanInput {
    /// Whether a block may have an event that was asked for.
    fn selects(&self, block: &SealedBlock) -> bool {
        let is_within =
            block.seqs.1 > self.after_seq && self.before_seq.is_none_or(|to| block.seqs.0 <= to);
        let has_did = self.dids.is_empty() || block.dids.iter().any(|did| self.dids.contains(did));
        is_within && has_did && block.collections.iter().any(|name| self.selects_collection(name))
    }

    fn selects_collection(&self, name: &str) -> bool {
        let kind = name.strip_prefix('$').unwrap_or("commit");
        let is_kind = self.kinds.is_empty() || self.kinds.iter().any(|wanted| wanted == kind);
        let is_wanted = |wanted: &String| match wanted.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => wanted == name,
        };
        let is_all = self.collections.is_empty() || kind != "commit";
        is_kind && (is_all || self.collections.iter().any(is_wanted))
    }
}

impl Endpoints<'_> {
    fn authorized(&self, request: &ArchiveRequest<'_>) -> Result<(), XrpcError> {
        let Some(token) = &self.network.spec.archive.token else { return Ok(()) };
        let stated = request.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        if stated.and_then(|text| text.strip_prefix("Bearer ")) == Some(token) {
            return Ok(());
        }
        Err(error(401, "AuthMissing", "Authentication Required"))
    }

    fn plan(&self, body: &[u8]) -> Result<HttpResponse, XrpcError> {
        let input: PlanInput = serde_json::from_slice(body)
            .map_err(|fault| error(400, "InvalidRequest", &fault.to_string()))?;
        let tip = input.before_seq.map_or(self.archive.tip(), |to| to.min(self.archive.tip()));
        let HostedArchive { plan_entries, .. } = self.network.spec.archive;
        let (mut segments, mut through, mut entries) = (Vec::new(), tip, 0);
        'segments: for (number, segment) in self.archive.segments.iter().enumerate() {
            let ranges = ranges(segment, &input);
            if ranges.is_empty() {
                continue;
            }
            let mut taken: Vec<&[usize; 2]> = Vec::new();
            for range in &ranges {
                if entries == plan_entries {
                    through = last_seq(&segments, segment, &taken).unwrap_or(through);
                    if !taken.is_empty() {
                        segments.push(planned(number, segment, &taken));
                    }
                    break 'segments;
                }
                entries += 1;
                taken.push(range);
            }
            segments.push(planned(number, segment, &taken));
        }
        let mut plan = json!({
            "plannedThroughSeq": through,
            "sealedTipSeq": tip,
            "segments": segments,
            "stats": {
                "segmentsExamined": self.archive.segments.len(),
                "segmentsMatched": segments.len(),
                "blocksMatched": entries,
                "entries": entries,
            },
        });
        self.falsify(&mut plan, &input);
        Ok(http::json(200, &plan))
    }

    /// Changes a plan as faults ask for.
    fn falsify(&self, plan: &mut Value, input: &PlanInput) {
        let inject = |fault| self.network.faults.inject(self.server, fault).is_some();
        if inject(Fault::PlanBeyond) {
            plan["plannedThroughSeq"] = (plan["sealedTipSeq"].as_u64().unwrap_or(0) + 1).into();
        }
        if inject(Fault::PlanStuck) {
            plan["plannedThroughSeq"] = input.after_seq.into();
        }
        if inject(Fault::PlanName) {
            plan["segments"][0]["name"] = "../../etc/seg_0000000000.jss".into();
        }
        if inject(Fault::PlanOutdated)
            && let Some(segments) = plan["segments"].as_array_mut()
        {
            segments.iter_mut().for_each(|segment| segment["checksum"] = "0123456789abcdef".into());
        }
        if inject(Fault::PlanOrder)
            && let Some(segments) = plan["segments"].as_array_mut()
        {
            segments.extend(segments.first().cloned());
        }
    }

    fn list(&self, query: &QueryParams) -> Result<HttpResponse, XrpcError> {
        let (limit, start) = (query.limit(100, 1000)?, query.offset()?);
        let all = self.archive.segments.iter().enumerate().skip(start).take(limit);
        let listed: Vec<Value> = all
            .map(|(number, segment)| {
                let mut listed = described(number, segment);
                listed["sizeBytes"] = segment.bytes.len().into();
                listed["eventCount"] = number_at(segment, 18, 4).into();
                listed["minWitnessedAt"] = number_at(segment, 42, 8).into();
                listed["maxWitnessedAt"] = number_at(segment, 50, 8).into();
                listed
            })
            .collect();
        let mut page = json!({ "segments": listed });
        if start + limit < self.archive.segments.len() {
            page["cursor"] = (start + limit).to_string().into();
        }
        Ok(http::json(200, &page))
    }

    fn segment(&self, request: &ArchiveRequest<'_>) -> Result<HttpResponse, XrpcError> {
        let segment = self.served(request.query.required("name")?)?;
        let tag = format!("\"{}\"", segment.checksum());
        let range = request.headers.get(RANGE).and_then(|value| value.to_str().ok());
        let response = match range.and_then(|range| bytes_of(range, segment.bytes.len())) {
            None => http::bytes(200, OCTETS, segment.bytes),
            Some((first, last)) => {
                let part = segment.bytes[first..=last].to_vec();
                let stated = format!("bytes {first}-{last}/{}", segment.bytes.len());
                http::with_header(http::bytes(206, OCTETS, part), CONTENT_RANGE, &stated)
            }
        };
        Ok(http::with_header(response, ETAG, &tag))
    }

    fn block(&self, query: &QueryParams) -> Result<HttpResponse, XrpcError> {
        let segment = self.served(query.required("segment")?)?;
        let number = query.required("blockIndex")?.parse().ok();
        let frame = number.and_then(|number| segment.frame(number));
        let frame = frame.ok_or_else(|| error(404, "BlockNotFound", "block index out of range"))?;
        let response = http::bytes(200, OCTETS, frame.to_vec());
        let tag = format!("\"{}:{}\"", segment.checksum(), number.unwrap_or(0));
        Ok(http::with_header(response, ETAG, &tag))
    }

    /// A segment as it is served: perhaps damaged.
    fn served(&self, name: &str) -> Result<SealedSegment, XrpcError> {
        let found = self.archive.get(name);
        let (_, segment) =
            found.ok_or_else(|| error(404, "SegmentNotFound", "segment not found"))?;
        let mut segment = segment.clone();
        let inject = |fault| self.network.faults.inject(self.server, fault).is_some();
        if inject(Fault::DamagedBlock) {
            let damaged: Vec<usize> =
                segment.blocks.iter().map(|block| block.start + block.len / 2).collect();
            damaged.into_iter().for_each(|at| segment.bytes[at] ^= 0x55);
        }
        if inject(Fault::WrongChecksum) {
            segment.bytes[4] ^= 1;
        }
        if inject(Fault::UnknownVersion) {
            segment.bytes[12] = 2;
            segment.seal();
        }
        Ok(segment)
    }
}

/// The selected blocks of a segment, as ranges.
fn ranges(segment: &SealedSegment, input: &PlanInput) -> Vec<[usize; 2]> {
    let mut ranges: Vec<[usize; 2]> = Vec::new();
    for (number, block) in segment.blocks.iter().enumerate() {
        if !input.selects(block) {
            continue;
        }
        match ranges.last_mut() {
            Some([_, last]) if *last + 1 == number => *last = number,
            _ => ranges.push([number, number]),
        }
    }
    ranges
}

/// The last sequence number of the units that a plan has so far.
fn last_seq(segments: &[Value], current: &SealedSegment, taken: &[&[usize; 2]]) -> Option<u64> {
    if let Some([_, last]) = taken.last() {
        return Some(current.blocks[*last].seqs.1);
    }
    segments.last()?["maxSeq"].as_u64()
}

/// A segment as plans name it.
fn planned(number: usize, segment: &SealedSegment, ranges: &[&[usize; 2]]) -> Value {
    let mut planned = described(number, segment);
    let blocks: usize = ranges.iter().map(|[first, last]| last - first + 1).sum();
    if blocks * 4 >= segment.blocks.len() * 3 {
        planned["mode"] = "segment".into();
        return planned;
    }
    planned["mode"] = "blocks".into();
    let ranges = ranges.iter().map(|[first, last]| json!({ "first": first, "last": last }));
    planned["blocks"] = ranges.collect();
    planned
}

fn described(number: usize, segment: &SealedSegment) -> Value {
    json!({
        "name": SealedArchive::name(number),
        "index": number,
        "checksum": segment.checksum(),
        "minSeq": number_at(segment, 26, 8),
        "maxSeq": number_at(segment, 34, 8),
    })
}

/// A number of the header.
fn number_at(segment: &SealedSegment, at: usize, len: usize) -> u64 {
    segment.bytes[at..at + len].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The first and last byte of a range that a client asks for.
fn bytes_of(range: &str, len: usize) -> Option<(usize, usize)> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last && first < len).then(|| (first, last.min(len - 1)))
}

const OCTETS: &str = "application/octet-stream";
