module wireproof/go-atmos

go 1.26

require (
	github.com/jcalabro/atmos v0.2.14
	github.com/jcalabro/gt v0.0.12
	wireproof/go-shell v0.0.0
)

require (
	github.com/jcalabro/jttp v0.0.4 // indirect
	github.com/klauspost/compress v1.18.4 // indirect
	github.com/mr-tron/base58 v1.2.0 // indirect
	github.com/puzpuzpuz/xsync/v4 v4.5.0 // indirect
	gitlab.com/yawning/secp256k1-voi v0.0.0-20230925100816-f2616030848b // indirect
	gitlab.com/yawning/tuplehash v0.0.0-20230713102510-df83abbf9a02 // indirect
	golang.org/x/crypto v0.50.0 // indirect
	golang.org/x/net v0.53.0 // indirect
	golang.org/x/sync v0.20.0 // indirect
	golang.org/x/sys v0.43.0 // indirect
	golang.org/x/text v0.36.0 // indirect
	golang.org/x/time v0.15.0 // indirect
)

replace wireproof/go-shell => ../go-shell
