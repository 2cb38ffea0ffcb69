package shell

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
)

// Trees is a peer's implementation of the task `mst`. A CID, Records and a Tree are types of its libraries.
type Trees[CID, Records, Tree any] struct {
	ParseCID func(bytes []byte) (CID, error)
	// Insert inserts the records one by one into an empty tree, in the order given.
	Insert func(keys [][]byte, values []CID) (Tree, error)
	// Gather converts the sorted records to the input of Bulk, at load.
	Gather func(keys [][]byte, values []CID) Records
	// Bulk builds a tree of all records at once.
	Bulk func(records Records) (Tree, error)
	// Root returns the CID of the tree.
	Root func(tree Tree) (fmt.Stringer, error)
	// Get returns the 36 bytes of the CID at the key, or nil.
	Get func(tree Tree, key []byte) (cid string, err error)
}

// Variants makes the variants of the task.
func (t Trees[CID, Records, Tree]) Variants() map[string]Variant {
	return map[string]Variant{
		"insert-root/ascending": {Load: t.loader(t.ascending)},
		"insert-root/shuffled":  {Load: t.loader(t.shuffled)},
		"bulk":                  {Load: t.loader(t.bulk)},
		"lookup":                {Load: t.loader(t.lookup)},
	}
}

func (t Trees[CID, Records, Tree]) loader(prepare func(recordsFile, []CID) (Work, error)) func([]string) (Work, error) {
	return func(files []string) (Work, error) {
		records, err := readRecords(files)
		if err != nil {
			return nil, err
		}
		values := make([]CID, len(records.cids))
		for index, bytes := range records.cids {
			if values[index], err = t.ParseCID(bytes); err != nil {
				return nil, err
			}
		}
		return prepare(records, values)
	}
}

func (t Trees[CID, Records, Tree]) ascending(records recordsFile, values []CID) (Work, error) {
	return &treeWork[Tree]{records, func() (Tree, error) { return t.Insert(records.keys, values) }, t.Root}, nil
}

func (t Trees[CID, Records, Tree]) shuffled(records recordsFile, values []CID) (Work, error) {
	keys, values := pick(records.keys, records.shuffled), pick(values, records.shuffled)
	return &treeWork[Tree]{records, func() (Tree, error) { return t.Insert(keys, values) }, t.Root}, nil
}

func (t Trees[CID, Records, Tree]) bulk(records recordsFile, values []CID) (Work, error) {
	gathered := t.Gather(records.keys, values)
	return &treeWork[Tree]{records, func() (Tree, error) { return t.Bulk(gathered) }, t.Root}, nil
}

// treeWork builds a tree and requests its root. The tree is garbage after that.
type treeWork[Tree any] struct {
	records recordsFile
	build   func() (Tree, error)
	rootOf  func(Tree) (fmt.Stringer, error)
}

func (w *treeWork[Tree]) Size() (units, bytes int) {
	return sizeOf(w.records.keys)
}

func (w *treeWork[Tree]) Prove() (Proof, error) {
	root, err := w.root()
	if err != nil {
		return Proof{}, err
	}
	return Proof{Counts: map[string]any{"records": len(w.records.keys), "root": root.String()}}, nil
}

func (w *treeWork[Tree]) Pass() (Stages, error) {
	root, err := w.root()
	outcome = root
	return nil, err
}

func (w *treeWork[Tree]) root() (root fmt.Stringer, err error) {
	defer refuseAtPanic(&err)
	tree, err := w.build()
	if err != nil {
		return nil, err
	}
	return w.rootOf(tree)
}

// lookup uses copies of the keys: Go compares a string with itself without reading its bytes.
func (t Trees[CID, Records, Tree]) lookup(records recordsFile, values []CID) (Work, error) {
	tree, err := t.Insert(records.keys, values)
	own := make([][]byte, len(records.keys))
	for index, key := range records.keys {
		own[index] = bytes.Clone(key)
	}
	get := func(key []byte) (string, error) { return t.Get(tree, key) }
	return &lookupWork{get, pick(own, records.asked)}, err
}

type lookupWork struct {
	get   func(key []byte) (cid string, err error)
	asked [][]byte
}

func (w *lookupWork) Size() (units, bytes int) {
	return sizeOf(w.asked)
}

func (w *lookupWork) Prove() (Proof, error) {
	var found int
	var checksum uint32
	err := w.look(func(cid string) {
		found++
		checksum += binary.BigEndian.Uint32([]byte(cid[cidPrefixLen:]))
	})
	return Proof{Counts: map[string]any{"lookups": len(w.asked), "found": found, "lookup_checksum": checksum}}, err
}

func (w *lookupWork) Pass() (Stages, error) {
	return nil, w.look(func(cid string) { lastFound = cid })
}

func (w *lookupWork) look(found func(cid string)) error {
	for _, key := range w.asked {
		cid, err := w.get(key)
		if err != nil {
			return err
		}
		if cid != "" {
			found(cid)
		}
	}
	return nil
}

// The result of a pass, in a package variable so that the compiler cannot remove the work.
var (
	outcome   any
	lastFound string
)

// recordsFile is the content of an `mst-records.bin`.
type recordsFile struct {
	keys, cids [][]byte
	// The records in shuffled order, and those to look up.
	shuffled, asked []uint32
}

// sizeOf counts keys, and the bytes of each with its CID.
func sizeOf(keys [][]byte) (units, bytes int) {
	for _, key := range keys {
		bytes += len(key) + cidLen
	}
	return len(keys), bytes
}

func readRecords(files []string) (recordsFile, error) {
	if len(files) != 1 {
		return recordsFile{}, errors.New("the records are one file")
	}
	file, err := os.ReadFile(files[0])
	if err != nil {
		return recordsFile{}, err
	}
	records, ok := splitRecords(file)
	if !ok {
		return recordsFile{}, fmt.Errorf("%s: not a file of records", files[0])
	}
	return records, nil
}

// splitRecords reads [u32 BE n], then [u16 BE length][key][CID] for each; [u32 BE n] and the indices of the
// shuffled order; [u32 BE m] and the indices of the lookups.
func splitRecords(file []byte) (records recordsFile, ok bool) {
	count, rest, ok := cutUint32(file)
	for ; ok && count > 0; count-- {
		var key []byte
		if key, rest, ok = cutPiece(rest); !ok || len(rest) < cidLen {
			return records, false
		}
		records.keys, records.cids = append(records.keys, key), append(records.cids, rest[:cidLen:cidLen])
		rest = rest[cidLen:]
	}
	if ok {
		records.shuffled, rest, ok = cutIndices(rest, len(records.keys))
	}
	if ok {
		records.asked, rest, ok = cutIndices(rest, len(records.keys))
	}
	return records, ok && len(rest) == 0 && len(records.shuffled) == len(records.keys)
}

// cutIndices reads a list of indices below `bound`.
func cutIndices(bytes []byte, bound int) (indices []uint32, rest []byte, ok bool) {
	count, rest, ok := cutUint32(bytes)
	for ; ok && count > 0; count-- {
		var index uint32
		index, rest, ok = cutUint32(rest)
		ok = ok && uint64(index) < uint64(bound)
		indices = append(indices, index)
	}
	return indices, rest, ok
}

func pick[T any](from []T, indices []uint32) []T {
	picked := make([]T, len(indices))
	for place, index := range indices {
		picked[place] = from[index]
	}
	return picked
}

// A CID of the form that AT Protocol uses: version, codec, hash function and length, then the digest.
const (
	cidLen       = 36
	cidPrefixLen = 4
)
