package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/jcalabro/atmos/api/comatproto"
	"github.com/jcalabro/atmos/car"
	"github.com/jcalabro/atmos/cbor"
	"github.com/jcalabro/atmos/mst"
	"github.com/jcalabro/atmos/repo"

	"wireproof/go-shell"
)

// decodeBlocks decodes the blocks of a CAR and passes each to emit.
type decodeBlocks func(archive *car.Reader, emit func(shell.Block)) error

func decoder(decode decodeBlocks) shell.Decoder {
	return shell.Decoder{Frame: decode.frame, Count: count}
}

// frame takes the steps of the streaming client, whose own decoder is not public.
func (decode decodeBlocks) frame(frame []byte, emit func(shell.Block)) error {
	kind, payload, err := decodeHeader(frame)
	if err != nil {
		return fmt.Errorf("header: %w", err)
	}
	switch kind {
	case "#commit":
		var commit comatproto.SyncSubscribeRepos_Commit
		if err := commit.UnmarshalCBOR(payload); err != nil {
			return fmt.Errorf("payload: %w", err)
		}
		return decode.archive(commit.Blocks, emit)
	case "#sync":
		var sync comatproto.SyncSubscribeRepos_Sync
		if err := sync.UnmarshalCBOR(payload); err != nil {
			return fmt.Errorf("payload: %w", err)
		}
		return decode.archive(sync.Blocks, emit)
	default:
		return decodeOther(kind, payload)
	}
}

// decodeHeader returns the type of the payload, which is empty for an error frame.
func decodeHeader(frame []byte) (kind string, payload []byte, err error) {
	entries, at, err := cbor.ReadMapHeader(frame, 0)
	for ; err == nil && entries > 0; entries-- {
		var key string
		if key, at, err = cbor.ReadText(frame, at); err != nil {
			break
		}
		switch key {
		case "t":
			kind, at, err = cbor.ReadText(frame, at)
		default:
			at, err = cbor.SkipValue(frame, at)
		}
	}
	if err != nil {
		return "", nil, err
	}
	return kind, frame[at:], nil
}

// decodeOther decodes a payload without blocks.
func decodeOther(kind string, payload []byte) error {
	switch kind {
	case "#identity":
		return new(comatproto.SyncSubscribeRepos_Identity).UnmarshalCBOR(payload)
	case "#account":
		return new(comatproto.SyncSubscribeRepos_Account).UnmarshalCBOR(payload)
	case "#info":
		return new(comatproto.SyncSubscribeRepos_Info).UnmarshalCBOR(payload)
	case "":
		_, err := cbor.Unmarshal(payload)
		return err
	default:
		return fmt.Errorf("unknown message type %q", kind)
	}
}

func (decode decodeBlocks) archive(blocks []byte, emit func(shell.Block)) error {
	archive, err := car.NewReader(bytes.NewReader(blocks))
	if err != nil {
		return err
	}
	return decode(archive, emit)
}

// decodeGenericBlocks decodes every block into generic values that borrow from the block, the faster of the two calls. The
// buffer that NextInto reuses for all blocks would invalidate them.
func decodeGenericBlocks(archive *car.Reader, emit func(shell.Block)) error {
	for {
		block, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		decoded, err := decodeGeneric(block.CID, block.Data)
		if err != nil {
			return err
		}
		emit(decoded)
	}
}

func decodeGeneric(cid cbor.CID, block []byte) (shell.Block, error) {
	if cid.Codec() != cbor.CodecDagCBOR {
		return shell.Block{}, nil
	}
	value, err := cbor.UnmarshalNoCopy(block)
	return shell.Block{Decoded: true, Value: value}, err
}

// decodeTypedBlocks follows the tree from the commit, as repo.LoadFromCAR does, and so knows the types of the blocks.
func decodeTypedBlocks(archive *car.Reader, emit func(shell.Block)) error {
	blocks := make(map[cbor.CID][]byte)
	for {
		block, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return typed.Decode(archive.Header().Roots[0], blocks, emit)
		}
		if err != nil {
			return err
		}
		blocks[block.CID] = block.Data
	}
}

var typed = shell.Typed[cbor.CID]{
	Commit: func(block []byte) (any, cbor.CID, error) {
		commit, err := repo.DecodeCommitCBOR(block)
		if err != nil {
			return nil, cbor.CID{}, err
		}
		return commit, commit.Data, nil
	},
	Node: func(block []byte) (any, error) {
		node, err := mst.DecodeNodeData(block)
		return &node, err
	},
	Children: children,
	Record:   decodeGeneric,
}

func children(node any, child func(cbor.CID) error) error {
	decoded := node.(*mst.NodeData)
	if decoded.Left.HasVal() {
		if err := child(decoded.Left.Val()); err != nil {
			return err
		}
	}
	for index := range decoded.Entries {
		if right := &decoded.Entries[index].Right; right.HasVal() {
			if err := child(right.Val()); err != nil {
				return err
			}
		}
	}
	return nil
}

func count(value any, counts *shell.Counts) {
	switch value := value.(type) {
	case *repo.Commit:
		counts.Commit(value.DID, value.Rev, value.Sig, value.Prev != nil)
	case *mst.NodeData:
		countNode(value, counts)
	case cbor.CID:
		counts.Links++
	}
}

func countNode(node *mst.NodeData, counts *shell.Counts) {
	counts.Node(len(node.Entries), node.Left.HasVal())
	for index := range node.Entries {
		counts.Entry(node.Entries[index].KeySuffix, node.Entries[index].Right.HasVal())
	}
}

var (
	genericChecks = []string{
		"cid-sha256", "key-order", "duplicate-keys", "minimal-heads", "utf8", "indefinite-lengths", "only-tag-42",
		"link-shape", "trailing-bytes", "depth-bound",
	}
	// The decoder of nodes ignores what comes after a node.
	typedChecks = []string{
		"cid-sha256", "key-order", "duplicate-keys", "minimal-heads", "utf8", "indefinite-lengths", "only-tag-42",
		"link-shape", "depth-bound",
	}
)
