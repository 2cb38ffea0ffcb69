// The runner of a general CBOR library for Go with a hand-written CAR reader.
//
// fxamacker/cbor decodes header and payload into structs and every block into `any`; the CAR is split in
// place. It represents code that is written for speed on top of one small module.
package main

import "wireproof/go-shell"

func main() {
	shell.Run(shell.Runner{
		Engine:  "fxamacker/cbor 2.9.6, CAR split by hand, crypto/sha256 where verified",
		Version: "v2.9.6",
		Tasks: map[string]map[string]shell.Variant{"decode": {
			"verified":   decoder(true).Variant(append([]string{"cid-sha256"}, checks...)),
			"unverified": decoder(false).Variant(checks),
		}},
	})
}

func decoder(verify bool) shell.Decoder {
	return shell.Decoder{
		Frame: func(frame []byte, emit func(shell.Block)) error { return decodeFrame(frame, verify, emit) },
		Count: count,
	}
}

var checks = []string{"utf8", "indefinite-lengths", "trailing-bytes", "depth-bound"}
