module wireproof/go-shell

go 1.24
