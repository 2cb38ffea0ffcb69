//! Where does a tree get its nodes from?

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasher;

use codec::Cid;

/// Blocks by name. Whoever implements it answers for the block being what its name says: trees do
/// not hash what they read.
pub trait BlockSource<'a> {
    /// The block called `cid`, if it is at hand.
    fn block(&self, cid: &Cid) -> Option<&'a [u8]>;

    /// Hears that these blocks will be asked for soon. A source that waits for memory can then wait
    /// for all of them together; others have nothing to do.
    #[inline]
    fn prefetch(&self, _cids: &mut dyn Iterator<Item = Cid>) {}
}

impl<'a, S: BlockSource<'a> + ?Sized> BlockSource<'a> for &S {
    #[inline]
    fn block(&self, cid: &Cid) -> Option<&'a [u8]> {
        (**self).block(cid)
    }

    #[inline]
    fn prefetch(&self, cids: &mut dyn Iterator<Item = Cid>) {
        (**self).prefetch(cids);
    }
}

/// No blocks: the source of a tree that was made and not loaded.
impl BlockSource<'static> for () {
    #[inline]
    fn block(&self, _cid: &Cid) -> Option<&'static [u8]> {
        None
    }
}

impl<'a, H: BuildHasher> BlockSource<'a> for HashMap<Cid, &'a [u8], H> {
    #[inline]
    fn block(&self, cid: &Cid) -> Option<&'a [u8]> {
        self.get(cid).copied()
    }
}

impl<'a> BlockSource<'a> for BTreeMap<Cid, &'a [u8]> {
    #[inline]
    fn block(&self, cid: &Cid) -> Option<&'a [u8]> {
        self.get(cid).copied()
    }
}
