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
	// Bulk builds a tree of all records at once; nil if the peer has no such call.
	Bulk func(records Records) (Tree, error)
	// Bytes returns the 36 bytes of a CID that Root returned.
	Bytes func(root fmt.Stringer) []byte
	// Root returns the CID of the tree.
	Root func(tree Tree) (fmt.Stringer, error)
	// Get returns the CID at the key, or nil.
	Get func(tree Tree, key []byte) (*CID, error)
	// Head returns the first four bytes of a digest.
	Head func(cid CID) uint32
	// Empty returns a tree without records.
	Empty func() Tree
	// Put inserts a record, or replaces the CID at its key.
	Put func(tree Tree, key []byte, value CID) error
	// Remove removes the record at the key.
	Remove func(tree Tree, key []byte) error
}

// Variants makes the variants of the task.
func (t Trees[CID, Records, Tree]) Variants() map[string]Variant {
	variants := map[string]Variant{
		"insert-root/ascending": {Load: t.loader(t.ascending)},
		"insert-root/shuffled":  {Load: t.loader(t.shuffled)},
		"lookup":                {Load: t.loader(t.lookup)},
		"mixed":                 {Load: t.loader(t.mixed)},
	}
	if t.Bulk != nil {
		variants["bulk"] = Variant{Load: t.loader(t.bulk)}
	}
	return variants
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
	keys := cloned(records.keys)
	return &treeWork[Tree]{records, func() (Tree, error) { return t.Insert(keys, values) }, t.Root}, nil
}

func (t Trees[CID, Records, Tree]) shuffled(records recordsFile, values []CID) (Work, error) {
	keys, values := cloned(pick(records.keys, records.shuffled)), pick(values, records.shuffled)
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

// lookup has its own copy of the key for each lookup, as every runner: Go compares a string with itself without reading
// its bytes, and a key that was looked up before would still be in the cache.
func (t Trees[CID, Records, Tree]) lookup(records recordsFile, values []CID) (Work, error) {
	tree, err := t.Insert(records.keys, values)
	get := func(key []byte) (*CID, error) { return t.Get(tree, key) }
	return &lookupWork[CID]{get, t.Head, cloned(pick(records.keys, records.asked)), nil}, err
}

func cloned(keys [][]byte) [][]byte {
	own := make([][]byte, len(keys))
	for index, key := range keys {
		own[index] = bytes.Clone(key)
	}
	return own
}

type lookupWork[CID any] struct {
	get   func(key []byte) (*CID, error)
	head  func(CID) uint32
	asked [][]byte
	// Holds the last result, so that the compiler cannot remove the work.
	last *CID
}

func (w *lookupWork[CID]) Size() (units, bytes int) {
	return sizeOf(w.asked)
}

func (w *lookupWork[CID]) Prove() (Proof, error) {
	var found int
	var checksum uint32
	err := w.look(func(cid *CID) {
		found++
		checksum += w.head(*cid)
	})
	return Proof{Counts: map[string]any{"lookups": len(w.asked), "found": found, "lookup_checksum": checksum}}, err
}

func (w *lookupWork[CID]) Pass() (Stages, error) {
	return nil, w.look(func(cid *CID) { w.last = cid })
}

func (w *lookupWork[CID]) look(found func(cid *CID)) error {
	for _, key := range w.asked {
		cid, err := w.get(key)
		if err != nil {
			return err
		}
		if cid != nil {
			found(cid)
		}
	}
	return nil
}

// mixed makes inserts, updates, deletes and lookups in turn on a tree that is empty before the first.
func (t Trees[CID, Records, Tree]) mixed(records recordsFile, values []CID) (Work, error) {
	steps := make([]step[CID], len(records.operations))
	for index, operation := range records.operations {
		steps[index] = step[CID]{operation.kind, bytes.Clone(records.keys[operation.key]), values[operation.value]}
	}
	return &mixedWork[CID, Records, Tree]{t, steps}, nil
}

// step is an operation with its key.
type step[CID any] struct {
	kind  byte
	key   []byte
	value CID
}

type mixedWork[CID, Records, Tree any] struct {
	trees Trees[CID, Records, Tree]
	steps []step[CID]
}

func (w *mixedWork[CID, Records, Tree]) Size() (units, bytes int) {
	for _, step := range w.steps {
		bytes += len(step.key) + cidLen
	}
	return len(w.steps), bytes
}

func (w *mixedWork[CID, Records, Tree]) Prove() (Proof, error) {
	var hits int
	var hitChecksum, rootChecksum uint32
	var last fmt.Stringer
	err := w.run(func(cid *CID) {
		hits++
		hitChecksum += w.trees.Head(*cid)
	}, func(root fmt.Stringer) {
		last = root
		rootChecksum += binary.BigEndian.Uint32(w.trees.Bytes(root)[cidPrefixLen:])
	})
	if err != nil || last == nil {
		return Proof{}, errors.Join(err, errors.New("no root"))
	}
	return Proof{Counts: map[string]any{
		"operations": len(w.steps), "hits": hits, "hit_checksum": hitChecksum,
		"root_checksum": rootChecksum, "last_root": last.String(),
	}}, nil
}

func (w *mixedWork[CID, Records, Tree]) Pass() (Stages, error) {
	return nil, w.run(func(cid *CID) { outcome = cid }, func(root fmt.Stringer) { outcome = root })
}

// run calls found with each CID that a lookup finds, and seen with each root.
func (w *mixedWork[CID, Records, Tree]) run(found func(cid *CID), seen func(root fmt.Stringer)) (err error) {
	defer refuseAtPanic(&err)
	tree := w.trees.Empty()
	for index, step := range w.steps {
		switch step.kind {
		case insertion, update:
			err = w.trees.Put(tree, step.key, step.value)
		case deletion:
			err = w.trees.Remove(tree, step.key)
		default:
			var cid *CID
			if cid, err = w.trees.Get(tree, step.key); cid != nil {
				found(cid)
			}
		}
		if err != nil {
			return err
		}
		if (index+1)%rootEvery == 0 || index+1 == len(w.steps) {
			root, err := w.trees.Root(tree)
			if err != nil {
				return err
			}
			seen(root)
		}
	}
	return nil
}

// The kinds of operations; every other one is a lookup.
const (
	insertion = 0
	update    = 1
	deletion  = 2
	lookupKey = 3
)

// rootEvery is the number of operations from one reading of the root to the next.
const rootEvery = 100

// outcome is the result of a pass, in a package variable so that the compiler cannot remove the work.
var outcome any

// recordsFile is the content of an `mst-records.bin`.
type recordsFile struct {
	keys, cids [][]byte
	// The records in shuffled order, and those to look up.
	shuffled, asked []uint32
	operations      []operation
}

// operation has the indices of the records with its key and with its CID.
type operation struct {
	kind       byte
	key, value uint32
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
// shuffled order; [u32 BE m] and the indices of the lookups; [u32 BE o], then [u8 kind][u32 BE key][u32 BE CID] for each
// operation.
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
	if ok {
		records.operations, rest, ok = cutOperations(rest, len(records.keys))
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

// cutOperations reads a list of operations on records below `bound`.
func cutOperations(bytes []byte, bound int) (operations []operation, rest []byte, ok bool) {
	count, rest, ok := cutUint32(bytes)
	for ; ok && count > 0; count-- {
		if ok = len(rest) > 0 && rest[0] <= lookupKey; !ok {
			break
		}
		next := operation{kind: rest[0]}
		if next.key, rest, ok = cutUint32(rest[1:]); ok {
			next.value, rest, ok = cutUint32(rest)
		}
		ok = ok && uint64(next.key) < uint64(bound) && uint64(next.value) < uint64(bound)
		operations = append(operations, next)
	}
	return operations, rest, ok
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
