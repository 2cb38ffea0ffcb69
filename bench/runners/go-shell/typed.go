package shell

import "fmt"

// Typed decodes blocks by their types, which a caller knows who follows the tree from the commit. A CID is a type of the
// peer's libraries.
type Typed[CID comparable] struct {
	// Commit decodes a commit and returns the root of its tree.
	Commit func(block []byte) (value any, data CID, err error)
	// Node decodes a node.
	Node func(block []byte) (value any, err error)
	// Children passes each subtree of a node to its callback.
	Children func(node any, child func(CID) error) error
	// Record decodes any other block.
	Record func(cid CID, block []byte) (Block, error)
}

// Decode decodes the blocks of a frame and passes each to emit. A frame has only a part of its account's tree: subtrees
// without a block are left out.
func (t Typed[CID]) Decode(root CID, blocks map[CID][]byte, emit func(Block)) error {
	walk := typedWalk[CID]{t, blocks, emit}
	if commit, found := walk.take(root); found {
		value, data, err := t.Commit(commit)
		if err != nil {
			return fmt.Errorf("commit: %w", err)
		}
		emit(Block{Decoded: true, Value: value})
		if err := walk.node(data); err != nil {
			return fmt.Errorf("node: %w", err)
		}
	}
	for cid, block := range blocks {
		value, err := t.Record(cid, block)
		if err != nil {
			return fmt.Errorf("record: %w", err)
		}
		emit(value)
	}
	return nil
}

type typedWalk[CID comparable] struct {
	peer Typed[CID]
	// Those that are not decoded yet.
	blocks map[CID][]byte
	emit   func(Block)
}

func (w *typedWalk[CID]) take(cid CID) (block []byte, found bool) {
	if block, found = w.blocks[cid]; found {
		delete(w.blocks, cid)
	}
	return block, found
}

// node decodes the node and those below it.
func (w *typedWalk[CID]) node(cid CID) error {
	block, found := w.take(cid)
	if !found {
		return nil
	}
	value, err := w.peer.Node(block)
	if err != nil {
		return err
	}
	w.emit(Block{Decoded: true, Value: value})
	return w.peer.Children(value, w.node)
}

// Commit counts the map of a commit of version 3: six entries, of which `prev` may be null.
func (c *Counts) Commit(did, rev string, signature []byte, hasPrev bool) {
	c.Maps++
	c.MapEntries += 6
	c.TextBytes += int64(len("did"+"rev"+"sig"+"data"+"prev"+"version") + len(did) + len(rev))
	c.ByteStringBytes += int64(len(signature))
	c.Links++
	c.Integers++
	c.link(hasPrev)
}

// Node counts the map of a node without its entries.
func (c *Counts) Node(entries int, hasLeft bool) {
	c.Maps++
	c.MapEntries += 2
	c.TextBytes += int64(len("e" + "l"))
	c.Arrays++
	c.ArrayItems += int64(entries)
	c.link(hasLeft)
}

// Entry counts the map of an entry of a node.
func (c *Counts) Entry(suffix []byte, hasRight bool) {
	c.Maps++
	c.MapEntries += 4
	c.TextBytes += int64(len("k" + "p" + "t" + "v"))
	c.ByteStringBytes += int64(len(suffix))
	c.Integers++
	c.Links++
	c.link(hasRight)
}

func (c *Counts) link(present bool) {
	if present {
		c.Links++
	} else {
		c.Nulls++
	}
}
