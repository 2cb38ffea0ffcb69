package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/bluesky-social/indigo/atproto/atcrypto"
	"github.com/bluesky-social/indigo/atproto/labeling"
)

// judgeLabels reads lines of a key, as a did:key, and a label in hexadecimal, and prints the verdict on each: "ok", or the fault.
func judgeLabels(input io.Reader) error {
	lines := bufio.NewScanner(input)
	lines.Buffer(nil, 1<<20)
	output := bufio.NewWriter(os.Stdout)
	keys := map[string]atcrypto.PublicKey{}
	for lines.Scan() {
		verdict := "ok"
		if err := judgeLabel(lines.Text(), keys); err != nil {
			verdict = strings.ReplaceAll(err.Error(), "\n", " ")
		}
		fmt.Fprintln(output, verdict)
	}
	if err := output.Flush(); err != nil {
		return err
	}
	return lines.Err()
}

func judgeLabel(line string, keys map[string]atcrypto.PublicKey) error {
	name, text, _ := strings.Cut(line, " ")
	key, isKnown := keys[name]
	if !isKnown {
		var err error
		if key, err = atcrypto.ParsePublicDIDKey(name); err != nil {
			return err
		}
		keys[name] = key
	}
	data, err := hex.DecodeString(text)
	if err != nil {
		return err
	}
	var label labeling.Label
	if err := label.UnmarshalCBOR(bytes.NewReader(data)); err != nil {
		return err
	}
	if err := label.VerifySyntax(); err != nil {
		return err
	}
	return label.VerifySignature(key)
}
