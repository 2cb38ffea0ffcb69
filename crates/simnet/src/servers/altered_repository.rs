//! Repositories and proofs as a faulty server sends them.

use bytes::Bytes;
use codec::car;
use codec::cid::Cid;

use super::fault::Fault;
use super::network::{NetworkState, now};
use super::spec::Server;
use crate::block::{BlockWriter, IN_MEMORY};
use crate::keys::SigningKey;
use crate::random::Seed;
use crate::repository::{Repository, sign};
use crate::time::DAY_MICROS;
use atproto::syntax::Tid;

/// The archive of a repository, altered by the enabled faults.
pub(super) fn archive(network: &NetworkState, server: Server, mut repository: Repository) -> Bytes {
    let injected = |fault| network.faults.inject(server, fault);
    let rev = repository.rev();
    if let Some(days) = injected(Fault::FutureRepo) {
        repository.commit_like(now() + days * DAY_MICROS);
    } else if let Some(days) = injected(Fault::OldRepo) {
        let old = Tid::new(rev.micros() - days * DAY_MICROS, rev.clock_id());
        let key = repository.account().key().clone();
        return with_root(&repository, &key, old, repository.tree().root(), &[]);
    } else if injected(Fault::ForeignRepo).is_some() {
        let curve = repository.account().key().curve();
        let mut random = Seed::new(network.spec.seed, "key of nobody").stream(0);
        let key = SigningKey::generate(curve, &mut random);
        return with_root(&repository, &key, rev, repository.tree().root(), &[]);
    } else if injected(Fault::OddTree).is_some() {
        let mut node = BlockWriter::new();
        node.map(2).text("e").array(0).text("l").link(repository.tree().root().as_cid_ref());
        let node = node.into_block();
        let key = repository.account().key().clone();
        return with_root(&repository, &key, rev, node.cid, &[(node.cid, node.data)]);
    } else if injected(Fault::RepoWithoutRecord).is_some() {
        return without(&repository, last_record(&repository));
    } else if injected(Fault::DamagedRepo).is_some() {
        let mut archive = repository.export_car();
        *archive.last_mut().expect("a block") ^= 1;
        return archive.into();
    }
    repository.export_car().into()
}

/// The repository under a commit of its own.
fn with_root(
    repository: &Repository,
    key: &SigningKey,
    rev: Tid,
    data: Cid,
    more: &[(Cid, Vec<u8>)],
) -> Bytes {
    let head = sign(repository.account().did(), key, rev, data);
    let mut car = car::Writer::new(Vec::new(), &[head.cid]).expect(IN_MEMORY);
    car.block(&head.cid, &head.data).expect(IN_MEMORY);
    more.iter().for_each(|(cid, block)| car.block(cid, block).expect(IN_MEMORY));
    repository.for_each_block(&mut |cid, block| {
        if *cid != repository.head().cid {
            car.block(cid, block).expect(IN_MEMORY);
        }
    });
    car.into_inner().into()
}

fn last_record(repository: &Repository) -> Cid {
    repository.tree().entries().last().expect("the profile").value
}

/// The repository without a block.
fn without(repository: &Repository, missing: Cid) -> Bytes {
    let mut car = car::Writer::new(Vec::new(), &[repository.head().cid]).expect(IN_MEMORY);
    repository.for_each_block(&mut |cid, block| {
        if *cid != missing {
            car.block(cid, block).expect(IN_MEMORY);
        }
    });
    car.into_inner().into()
}

/// The proof of a record without a block.
pub(super) fn proof_without(proof: &[u8], missing: Cid) -> Vec<u8> {
    let archive = car::read(proof, &car::Options::default()).expect("a proof");
    let root = archive.roots.first().and_then(|root| root.to_cid()).expect("a root");
    let mut car = car::Writer::new(Vec::new(), &[root]).expect(IN_MEMORY);
    for block in archive.blocks.iter().filter(|block| block.cid != missing.as_cid_ref()) {
        let cid = block.cid.to_cid().expect("a CID of AT Protocol");
        car.block(&cid, block.data).expect(IN_MEMORY);
    }
    car.into_inner()
}
