package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/bluesky-social/indigo/atproto/atdata"
	"github.com/bluesky-social/indigo/atproto/repo"
	"github.com/bluesky-social/indigo/atproto/repo/mst"
	"github.com/ipfs/go-cid"
	"github.com/ipld/go-car"

	"wireproof/go-shell"
)

// decodeTypedBlocks follows the tree from the commit, as repo.LoadRepoFromCAR does, and so knows the types of the blocks:
// the structs of indigo's own decoders for the commit and the nodes, atdata for the records. Both structs skip unknown
// fields and ignore trailing bytes.
func decodeTypedBlocks(archive *car.CarReader, emit func(shell.Block)) error {
	blocks := make(map[cid.Cid][]byte)
	for {
		block, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return typed.Decode(archive.Header.Roots[0], blocks, emit)
		}
		if err != nil {
			return fmt.Errorf("CAR: %w", err)
		}
		blocks[block.Cid()] = block.RawData()
	}
}

var typed = shell.Typed[cid.Cid]{
	Commit: func(block []byte) (any, cid.Cid, error) {
		commit := new(repo.Commit)
		err := commit.UnmarshalCBOR(bytes.NewReader(block))
		return commit, commit.Data, err
	},
	Node:     func(block []byte) (any, error) { return mst.NodeDataFromCBOR(bytes.NewReader(block)) },
	Children: children,
	Record: func(name cid.Cid, block []byte) (shell.Block, error) {
		if name.Type() != cid.DagCBOR {
			return shell.Block{}, nil
		}
		value, err := atdata.UnmarshalCBOR(block)
		return shell.Block{Decoded: true, Value: value}, err
	},
}

func children(node any, child func(cid.Cid) error) error {
	decoded := node.(*mst.NodeData)
	if decoded.Left != nil {
		if err := child(*decoded.Left); err != nil {
			return err
		}
	}
	for index := range decoded.Entries {
		if right := decoded.Entries[index].Right; right != nil {
			if err := child(*right); err != nil {
				return err
			}
		}
	}
	return nil
}

func countNode(node *mst.NodeData, counts *shell.Counts) {
	counts.Node(len(node.Entries), node.Left != nil)
	for index := range node.Entries {
		counts.Entry(node.Entries[index].KeySuffix, node.Entries[index].Right != nil)
	}
}
