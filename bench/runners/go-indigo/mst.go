package main

import (
	"encoding/binary"
	"fmt"

	"github.com/bluesky-social/indigo/atproto/repo/mst"
	"github.com/ipfs/go-cid"

	"wireproof/go-shell"
)

// trees uses the public methods of mst.Tree. Its only call for many records is LoadTreeFromMap, which
// inserts them one by one in the iteration order of a Go map, which is random.
var trees = shell.Trees[cid.Cid, map[string]cid.Cid, *mst.Tree]{
	ParseCID: cid.Cast,
	Insert:   insert,
	Gather: func(keys [][]byte, values []cid.Cid) map[string]cid.Cid {
		records := make(map[string]cid.Cid, len(keys))
		for index, key := range keys {
			records[string(key)] = values[index]
		}
		return records
	},
	Bulk: mst.LoadTreeFromMap,
	Root: func(tree *mst.Tree) (fmt.Stringer, error) { return tree.RootCID() },
	Get:  func(tree *mst.Tree, key []byte) (*cid.Cid, error) { return tree.Get(key) },
	// A CID begins with four bytes for version, codec, hash function and length.
	Head:  func(value cid.Cid) uint32 { return binary.BigEndian.Uint32(value.Bytes()[4:]) },
	Bytes: func(root fmt.Stringer) []byte { return root.(*cid.Cid).Bytes() },
	Empty: func() *mst.Tree {
		tree := mst.NewEmptyTree()
		return &tree
	},
	Put: func(tree *mst.Tree, key []byte, value cid.Cid) error {
		_, err := tree.Insert(key, value)
		return err
	},
	Remove: func(tree *mst.Tree, key []byte) error {
		_, err := tree.Remove(key)
		return err
	},
}

func insert(keys [][]byte, values []cid.Cid) (*mst.Tree, error) {
	tree := mst.NewEmptyTree()
	for index, key := range keys {
		if _, err := tree.Insert(key, values[index]); err != nil {
			return nil, err
		}
	}
	return &tree, nil
}
