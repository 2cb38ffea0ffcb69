package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	comatproto "github.com/bluesky-social/indigo/api/atproto"
	"github.com/bluesky-social/indigo/atproto/atdata"
	"github.com/bluesky-social/indigo/atproto/repo"
	"github.com/bluesky-social/indigo/atproto/repo/mst"
	"github.com/bluesky-social/indigo/events"
	"github.com/ipfs/go-cid"
	"github.com/ipld/go-car"
	cbg "github.com/whyrusleeping/cbor-gen"

	"wireproof/go-shell"
)

// reader is reused for every frame, as events.HandleRepoStream does.
var reader = new(cbg.CborReader)

// decodeBlocks decodes the blocks of a CAR and passes each to emit.
type decodeBlocks func(archive *car.CarReader, emit func(shell.Block)) error

func (decode decodeBlocks) frame(frame []byte, emit func(shell.Block)) error {
	kind, err := decodeHeader(frame)
	if err != nil {
		return err
	}
	switch kind {
	case "#commit":
		var commit comatproto.SyncSubscribeRepos_Commit
		if err := commit.UnmarshalCBOR(reader); err != nil {
			return fmt.Errorf("payload: %w", err)
		}
		return decode.archive(commit.Blocks, emit)
	case "#sync":
		var sync comatproto.SyncSubscribeRepos_Sync
		if err := sync.UnmarshalCBOR(reader); err != nil {
			return fmt.Errorf("payload: %w", err)
		}
		return decode.archive(sync.Blocks, emit)
	default:
		return decodeOther(kind)
	}
}

// decodeHeader leaves the reader at the payload and returns its type, which is empty for an error frame.
func decodeHeader(frame []byte) (kind string, err error) {
	reader.SetReader(bytes.NewReader(frame))
	var header events.EventHeader
	if err := header.UnmarshalCBOR(reader); err != nil {
		return "", fmt.Errorf("header: %w", err)
	}
	if header.Op == events.EvtKindErrorFrame {
		return "", nil
	}
	return header.MsgType, nil
}

// decodeOther decodes a payload without blocks.
func decodeOther(kind string) error {
	switch kind {
	case "#identity":
		return new(comatproto.SyncSubscribeRepos_Identity).UnmarshalCBOR(reader)
	case "#account":
		return new(comatproto.SyncSubscribeRepos_Account).UnmarshalCBOR(reader)
	case "#info":
		return new(comatproto.SyncSubscribeRepos_Info).UnmarshalCBOR(reader)
	case "":
		return new(events.ErrorFrame).UnmarshalCBOR(reader)
	default:
		return fmt.Errorf("unknown message type %q", kind)
	}
}

func (decode decodeBlocks) archive(blocks []byte, emit func(shell.Block)) error {
	archive, err := car.NewCarReader(bytes.NewReader(blocks))
	if err != nil {
		return fmt.Errorf("CAR: %w", err)
	}
	return decode(archive, emit)
}

// decodeGenericBlocks decodes every block into generic values, since a CAR does not state the type of a block. A caller
// who follows the tree knows it (typed.go).
func decodeGenericBlocks(archive *car.CarReader, emit func(shell.Block)) error {
	for {
		block, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("CAR: %w", err)
		}
		if block.Cid().Type() != cid.DagCBOR {
			emit(shell.Block{})
			continue
		}
		value, err := atdata.UnmarshalCBOR(block.RawData())
		if err != nil {
			return fmt.Errorf("block: %w", err)
		}
		emit(shell.Block{Decoded: true, Value: value})
	}
}

func count(value any, counts *shell.Counts) {
	switch value := value.(type) {
	case *repo.Commit:
		counts.Commit(value.DID, value.Rev, value.Sig, value.Prev != nil)
	case *mst.NodeData:
		countNode(value, counts)
	case atdata.Blob:
		countBlob(value, counts)
	case atdata.Bytes:
		counts.ByteStringBytes += int64(len(value))
	case atdata.CIDLink:
		counts.Links++
	}
}

// countBlob counts the map that atdata decoded as a Blob; atdata refuses maps with other fields.
func countBlob(blob atdata.Blob, counts *shell.Counts) {
	counts.Maps++
	if legacy := blob.Size < 0; legacy {
		counts.MapEntries += 2
		counts.TextBytes += int64(len("cid") + len(blob.Ref.String()) + len("mimeType") + len(blob.MimeType))
		return
	}
	counts.MapEntries += 4
	counts.TextBytes += int64(len("$type") + len("blob") + len("ref") + len("mimeType") + len(blob.MimeType) + len("size"))
	counts.Links++
	counts.Integers++
}
