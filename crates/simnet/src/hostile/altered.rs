//! Signed repositories and streams with one altered block, for tests of single checks.
//!
//! Hashes and signatures are valid, so that only a check of the block itself can reject the case. These cases are not
//! part of the published set.

use codec::Cid;

use super::Spec;
use super::case::{Case, CaseBuilder, Rule};
use super::fixture::{Fixture, RepositoryBuilder, altered, rejected_frames};
use super::parts::archive::{Item, Section};
use super::parts::commit::{Author, CommitEvent, Write, sign};
use super::parts::tree::{Leaf, node};
use crate::time::{DAY_MICROS, START_MICROS};

/// An addition to a valid block, a map.
#[derive(Clone, Copy, Debug)]
pub enum Addition<'a> {
    /// An entry with a key that no verifier knows and this item as its value.
    Entry(&'a [u8]),
    /// Bytes after the block's one item.
    After(&'a [u8]),
}

/// A source of cases with one altered block.
#[derive(Clone, Debug)]
pub struct AlteredBlocks {
    fixture: Fixture,
}

impl AlteredBlocks {
    /// The accounts and records of the set of `spec`.
    pub fn new(spec: &Spec) -> Self {
        Self { fixture: Fixture::new(spec.seed) }
    }

    /// Repositories and streams with the addition in a commit object, and with it in the root of a tree.
    pub fn cases(&self, addition: Addition<'_>) -> [Case; 4] {
        [
            self.repository_of_commit(addition),
            self.repository_of_node(addition),
            self.stream_of_commit(addition),
            self.stream_of_node(addition),
        ]
    }

    /// Streams with a first commit whose tree has keys out of order, a key in the layer of another, or an untrimmed root, or
    /// whose rev is three days after the `time` of the event.
    pub fn first_commits(&self) -> [Case; 4] {
        let [low, high, other] = self.fixture.leaves([0, 1, 0]);
        let encoded = |item: Item| Section::of(item.encode());
        let swapped = encoded(node(None, &[(&other, None), (&low, None)]));
        let mixed = encoded(node(None, &[(&low, None), (&high, None)]));
        let trimmed = encoded(node(None, &[(&low, None)]));
        let untrimmed = encoded(node(Some(trimmed.cid()), &[]));
        [
            self.first_commit("order", "tree/order", &[&low, &other], vec![swapped]),
            self.first_commit("layer", "tree/layer", &[&low, &high], vec![mixed]),
            self.first_commit(
                "untrimmed",
                "tree/untrimmed-root",
                &[&low],
                vec![untrimmed, trimmed],
            ),
            self.future_commit(&low),
        ]
    }

    fn repository_of_commit(&self, addition: Addition<'_>) -> Case {
        let mut builder = RepositoryBuilder::new(&self.fixture);
        let [leaf] = self.fixture.leaves([0]);
        let root = builder.node(None, &[(&leaf, None)]);
        let key = self.fixture.account().key();
        let object = self.fixture.unsigned_commit(&root);
        let commit = match addition {
            Addition::Entry(item) => sign(with_entry(object, item), key),
            Addition::After(bytes) => followed(&sign(object, key), bytes),
        };
        self.repository("commit", builder.committed(commit).to_bytes())
    }

    fn repository_of_node(&self, addition: Addition<'_>) -> Case {
        let archive =
            RepositoryBuilder::one_altered_node(&self.fixture, &self.fixture.leaves([0]), |node| {
                *node = match addition {
                    Addition::Entry(item) => with_entry(node.clone(), item),
                    Addition::After(bytes) => followed(node, bytes),
                };
            });
        self.repository("node", archive.to_bytes())
    }

    fn stream_of_commit(&self, addition: Addition<'_>) -> Case {
        let key = self.fixture.account().key();
        self.stream("commit", |event| match addition {
            Addition::Entry(item) => {
                event.re_sign(key, |object| *object = with_entry(object.clone(), item));
            }
            Addition::After(bytes) => {
                event.tamper(key, |object| *object = followed(object, bytes));
            }
        })
    }

    fn stream_of_node(&self, addition: Addition<'_>) -> Case {
        let key = self.fixture.account().key();
        self.stream("node", |event| {
            let root = root_of(event);
            let section = event.archive.section(&root);
            let mut data = section.data.clone();
            match addition {
                Addition::Entry(item) => {
                    data[0] += 1;
                    data.extend([b"\x61x", item].concat());
                }
                Addition::After(bytes) => data.extend(bytes),
            }
            *section = Section::of(data);
            let altered = section.cid();
            event.re_sign(key, |object| object.set("data", Item::link(&altered)));
        })
    }

    fn first_commit(
        &self,
        name: &str,
        code: &'static str,
        leaves: &[&Leaf],
        nodes: Vec<Section>,
    ) -> Case {
        let mut newcomer = Author::new(self.fixture.account(), START_MICROS);
        let creates: Vec<Write<'_>> = leaves.iter().map(|leaf| Write::Create(leaf)).collect();
        let mut event = newcomer.commit(&creates);
        event.replace_tree(self.fixture.account().key(), nodes);
        rejected_frames(&self.fixture, name, code, CANONICAL, &[event.to_frame()])
    }

    fn future_commit(&self, leaf: &Leaf) -> Case {
        let account = self.fixture.account();
        let mut event = Author::new(account, START_MICROS).commit(&[Write::Create(leaf)]);
        event.rev = account.tid(START_MICROS + 3 * DAY_MICROS).to_string();
        let rev = Item::text(&event.rev);
        event.re_sign(account.key(), |object| object.set("rev", rev));
        rejected_frames(&self.fixture, "future", "event/future-rev", CANONICAL, &[event.to_frame()])
    }

    fn repository(&self, name: &str, bytes: Vec<u8>) -> Case {
        CaseBuilder::car(self.fixture.account(), name, bytes).rejected("commit/cbor", CANONICAL)
    }

    fn stream(&self, name: &str, change: impl FnOnce(&mut CommitEvent)) -> Case {
        altered(&self.fixture, name, "commit/cbor", CANONICAL, change)
    }
}

fn with_entry(mut block: Item, item: &[u8]) -> Item {
    block.set("x", Item::Raw(item.to_vec()));
    block
}

fn followed(block: &Item, bytes: &[u8]) -> Item {
    Item::Raw([&block.encode()[..], bytes].concat())
}

/// The root of the tree that the commit object names.
fn root_of(event: &mut CommitEvent) -> Cid {
    let Item::Link(cid) = event.object.get("data") else { unreachable!("data is a link") };
    Cid::from_bytes(cid).expect("a CID of the protocol")
}

const CANONICAL: Rule =
    Rule { section: "data model", sentence: "a block is one item of canonical DAG-CBOR" };

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile::InputKind;

    #[test]
    fn a_repository_and_a_stream_are_altered_in_each_of_two_blocks() {
        let altered = AlteredBlocks::new(&Spec::default());
        let cases = altered.cases(Addition::Entry(b"\x78\x01a"));
        let kinds = [InputKind::Repo, InputKind::Repo, InputKind::Frames, InputKind::Frames];
        assert_eq!(cases.each_ref().map(|case| case.kind), kinds);
        for case in &cases {
            let entry = b"\x61x\x78\x01a";
            let places = case.bytes.windows(entry.len()).filter(|window| window == entry);
            assert_eq!(places.count(), 1, "{}", case.name);
        }
        for case in altered.cases(Addition::After(b"after the item")) {
            let text = case.bytes.windows(14).filter(|window| window == b"after the item");
            assert_eq!(text.count(), 1, "{}", case.name);
        }
    }
}
