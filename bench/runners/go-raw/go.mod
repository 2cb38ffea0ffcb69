module wireproof/go-raw

go 1.24

require (
	github.com/fxamacker/cbor/v2 v2.9.6
	wireproof/go-shell v0.0.0
)

require github.com/x448/float16 v0.8.4 // indirect

replace wireproof/go-shell => ../go-shell
