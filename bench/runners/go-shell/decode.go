package shell

import (
	"encoding/binary"
	"fmt"
	"os"
)

// Decoder is a peer's implementation of the task `decode`.
type Decoder struct {
	// Frame decodes one frame and passes each CAR block to emit.
	Frame func(frame []byte, emit func(Block)) error
	// Count counts a value of a type of the peer's library. Values of Go's own types are counted without it.
	Count func(value any, counts *Counts)
}

// Block is a CAR block. Value is set only if its codec is DAG-CBOR.
type Block struct {
	Decoded bool
	Value   any
}

// Counts are the counts of a frame's blocks, by the names of the protocol.
type Counts struct {
	Blocks, Maps, MapEntries, Arrays, ArrayItems, TextBytes, ByteStringBytes, Links,
	Integers, Floats, Booleans, Nulls int64
}

// Variant makes a variant of the task. Counts named in ungiven are omitted from the answer.
func (d Decoder) Variant(checks []string, ungiven ...string) Variant {
	return Variant{Checks: checks, Load: func(files []string) (Work, error) {
		frames, err := readFrames(files)
		return &decodeWork{d, frames, ungiven}, err
	}}
}

type decodeWork struct {
	decoder Decoder
	frames  [][]byte
	ungiven []string
}

func (w *decodeWork) Size() (units, bytes int) {
	for _, frame := range w.frames {
		bytes += len(frame)
	}
	return len(w.frames), bytes
}

func (w *decodeWork) Prove() (Proof, error) {
	var total Counts
	var errors int64
	for index, frame := range w.frames {
		var counts Counts
		err := w.decode(frame, func(block Block) {
			counts.Blocks++
			if block.Decoded {
				counts.Value(block.Value, w.decoder.Count)
			}
		})
		if err == nil {
			total.add(&counts)
			continue
		}
		if errors++; errors <= toldRefusals {
			fmt.Fprintf(os.Stderr, "frame %d refused: %v\n", index, err)
		}
	}
	answer := total.named()
	answer["frames"], answer["errors"] = int64(len(w.frames)), errors
	for _, name := range w.ungiven {
		delete(answer, name)
	}
	return Proof{Counts: answer}, nil
}

func (w *decodeWork) Pass() (Stages, error) {
	for _, frame := range w.frames {
		_ = w.decode(frame, barrier)
	}
	return nil, nil
}

// decode treats a panic of a peer's library as a decoding error of the frame.
func (w *decodeWork) decode(frame []byte, emit func(Block)) (err error) {
	defer refuseAtPanic(&err)
	return w.decoder.Frame(frame, emit)
}

func refuseAtPanic(err *error) {
	if fault := recover(); fault != nil {
		*err = fmt.Errorf("panicked: %v", fault)
	}
}

// barrier lets every value escape, so that the compiler cannot remove its construction.
func barrier(block Block) {
	sink = block
}

var sink Block

// Value counts a value with all that it contains; those of other types than Go's own are passed to other.
func (c *Counts) Value(value any, other func(value any, counts *Counts)) {
	switch value := value.(type) {
	case map[string]any:
		c.Maps++
		c.MapEntries += int64(len(value))
		for key, value := range value {
			c.TextBytes += int64(len(key))
			c.Value(value, other)
		}
	case []any:
		c.Arrays++
		c.ArrayItems += int64(len(value))
		for _, item := range value {
			c.Value(item, other)
		}
	case string:
		c.TextBytes += int64(len(value))
	case []byte:
		c.ByteStringBytes += int64(len(value))
	case int64, uint64:
		c.Integers++
	case float64:
		c.Floats++
	case bool:
		c.Booleans++
	case nil:
		c.Nulls++
	default:
		other(value, c)
	}
}

func (c *Counts) add(other *Counts) {
	mine, theirs := c.fields(), other.fields()
	for name, count := range mine {
		*count += *theirs[name]
	}
}

func (c *Counts) named() map[string]int64 {
	named := make(map[string]int64)
	for name, count := range c.fields() {
		named[name] = *count
	}
	return named
}

func (c *Counts) fields() map[string]*int64 {
	return map[string]*int64{
		"blocks":            &c.Blocks,
		"maps":              &c.Maps,
		"map_entries":       &c.MapEntries,
		"arrays":            &c.Arrays,
		"array_items":       &c.ArrayItems,
		"text_bytes":        &c.TextBytes,
		"byte_string_bytes": &c.ByteStringBytes,
		"links":             &c.Links,
		"integers":          &c.Integers,
		"floats":            &c.Floats,
		"booleans":          &c.Booleans,
		"nulls":             &c.Nulls,
	}
}

func readFrames(files []string) ([][]byte, error) {
	var frames [][]byte
	for _, path := range files {
		file, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		fresh, ok := splitFrames(file)
		if !ok {
			return nil, fmt.Errorf("%s: not a file of frames", path)
		}
		frames = append(frames, fresh...)
	}
	return frames, nil
}

// splitFrames reads [u32 BE count], then [u32 BE length][frame] for each.
func splitFrames(file []byte) (frames [][]byte, ok bool) {
	count, rest, ok := cutUint32(file)
	for ; ok && count > 0; count-- {
		var length uint32
		if length, rest, ok = cutUint32(rest); !ok || uint64(length) > uint64(len(rest)) {
			return nil, false
		}
		frames, rest = append(frames, rest[:length:length]), rest[length:]
	}
	return frames, ok && len(rest) == 0
}

func cutUint32(bytes []byte) (number uint32, rest []byte, ok bool) {
	if len(bytes) < 4 {
		return 0, nil, false
	}
	return binary.BigEndian.Uint32(bytes), bytes[4:], true
}

// The number of refusals that are logged to standard error; the rest are only counted.
const toldRefusals = 5
