// The runner of indigo, the Go stack of the relay and Tap.
//
// Frames take the path of indigo's consumer (events.HandleRepoStream): a generated decoder for the header,
// one for each type of payload, go-car for the blocks, and atdata for the content of a block. Signatures are verified
// by its packages repo and atcrypto, trees are those of repo/mst.
package main

import (
	"log/slog"

	"github.com/bluesky-social/indigo/atproto/atcrypto"

	"wireproof/go-shell"
)

func main() {
	// repo.VerifyCommitMessage makes a logger for each event. Writing its lines must not be measured.
	slog.SetDefault(slog.New(slog.DiscardHandler))
	shell.Run(shell.Runner{
		Engine:  "indigo events, api/atproto (cbor-gen) and atdata (refmt), go-car 0.6.1; atproto/repo, repo/mst and atcrypto",
		Version: "v0.0.0-20260605210604-af2fec94f34c",
		Tasks: map[string]map[string]shell.Variant{
			"decode": {
				// go-car's reader hashes every block; it has no option to turn that off.
				"verified":             decoder(decodeGenericBlocks).Variant(checks, ungiven...),
				"verified/typed-nodes": decoder(decodeTypedBlocks).Variant(typedChecks, ungiven...),
			},
			"sigs":   verifier.Variants(sigsChecks, sigsChecks),
			"mst":    trees.Variants(),
			"repo":   repositories.Variants(repoChecks),
			"commit": judge.Variants(commitChecks),
			"hostile": {
				"repo":   shell.HostileRepo(atcrypto.ParsePublicDIDKey, []string{"cid-sha256", "low-s"}, backfill),
				"frames": judge.Hostile(commitChecks),
			},
		},
	})
}

func decoder(decode decodeBlocks) shell.Decoder {
	return shell.Decoder{Frame: decode.frame, Count: count}
}

var checks = []string{"cid-sha256", "duplicate-keys", "only-tag-42", "link-shape"}

// typedChecks are those that the structs of commits and nodes make as well.
var typedChecks = []string{"cid-sha256", "link-shape"}

// The data model of atdata has no floats: an integral one becomes an integer, any other is refused.
var ungiven = []string{"floats"}
