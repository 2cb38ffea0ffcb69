package main

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/jcalabro/atmos/cbor"
	"github.com/jcalabro/atmos/mst"

	"wireproof/go-shell"
)

// trees uses the public methods of mst.Tree, which has no call for many records.
var trees = shell.Trees[cbor.CID, struct{}, *mst.Tree]{
	ParseCID: cbor.ParseCIDBytes,
	Insert: func(keys [][]byte, values []cbor.CID) (*mst.Tree, error) {
		tree := mst.NewTree(mst.NewMemBlockStore())
		for index, key := range keys {
			if err := tree.Insert(text(key), values[index]); err != nil {
				return nil, err
			}
		}
		return tree, nil
	},
	Root:   func(tree *mst.Tree) (fmt.Stringer, error) { return tree.RootCID() },
	Bytes:  func(root fmt.Stringer) []byte { return root.(cbor.CID).Bytes() },
	Empty:  func() *mst.Tree { return mst.NewTree(mst.NewMemBlockStore()) },
	Put:    func(tree *mst.Tree, key []byte, value cbor.CID) error { return tree.Insert(text(key), value) },
	Remove: func(tree *mst.Tree, key []byte) error { return tree.Remove(text(key)) },
	Get:    func(tree *mst.Tree, key []byte) (*cbor.CID, error) { return tree.Get(text(key)) },
	Head: func(cid cbor.CID) uint32 {
		hash := cid.Hash()
		return binary.BigEndian.Uint32(hash[:])
	},
}

// text is the key as a string that borrows its bytes: the keys are given as the peer's own type.
func text(key []byte) string {
	return unsafe.String(unsafe.SliceData(key), len(key))
}
