package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
)

// block is one block of a CAR, still in the frame's bytes.
type block struct {
	codec  byte
	digest []byte
	bytes  []byte
}

func (b block) matchesItsCID() bool {
	digest := sha256.Sum256(b.bytes)
	return bytes.Equal(digest[:], b.digest)
}

// cutHeader reads the header of a CAR v1 and returns the blocks after it.
func cutHeader(car []byte) (blocks []byte, err error) {
	encoded, blocks, err := cutSection(car)
	if err != nil {
		return nil, err
	}
	var header struct {
		Version uint64 `cbor:"version"`
		Roots   []any  `cbor:"roots"`
	}
	if err := mode.Unmarshal(encoded, &header); err != nil {
		return nil, err
	}
	if header.Version != 1 {
		return nil, errors.New("not a CAR of version 1")
	}
	return blocks, nil
}

// cutBlock reads the next block:
//
//	| bytes | content |
//	|---|---|
//	| 1 to 10 | varint: length of all that follows |
//	| 4 | CID version 1, codec, SHA-256, digest of 32 bytes |
//	| 32 | digest |
//	| … | the block |
func cutBlock(blocks []byte) (first block, rest []byte, err error) {
	section, rest, err := cutSection(blocks)
	if err != nil {
		return block{}, nil, err
	}
	if len(section) < cidLen || section[0] != 1 || section[1] >= 0x80 || section[2] != sha2_256 || section[3] != 32 {
		return block{}, nil, errors.New("a block's CID is not of version 1 with SHA-256")
	}
	return block{codec: section[1], digest: section[4:cidLen], bytes: section[cidLen:]}, rest, nil
}

func cutSection(bytes []byte) (section, rest []byte, err error) {
	length, head := binary.Uvarint(bytes)
	if head <= 0 || length > uint64(len(bytes)-head) {
		return nil, nil, errors.New("a section of the CAR ends early")
	}
	bytes = bytes[head:]
	return bytes[:length], bytes[length:], nil
}

const (
	cidLen   = 36
	dagCBOR  = 0x71
	sha2_256 = 0x12
)
