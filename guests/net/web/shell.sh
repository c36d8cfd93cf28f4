# What every case evaluates first: starts the server, and defines what a case says with.
mkdir ../state
web serve ../state/port ../state/log > /dev/null 2>&1 &
trap "kill $! 2> /dev/null" EXIT
while ! [ -s ../state/port ]; do sleep 0.01; done
P=$(cat ../state/port); H=127.0.0.1:$P; U=http://$H
# Hides what differs from run to run.
hide() {
    sed -E -e "s/\b$P\b/PORT/g" -e 's/after [0-9]+ ms/after N ms/; s/after [0-9]+ milliseconds/after N milliseconds/' \
        -e 's/-{24}[0-9a-f]{16}/BOUNDARY/; s/[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}/DATE/g; s/wall clock time: .*/wall clock time: TIME/' \
        -e 's/\([0-9.]+ [KMG]?B\/s\)/(SPEED)/; s/ in [0-9.m]+s / in TIME /; s/%? *[0-9.]+[KMG]?=[0-9.m]+s$/ RATE/' \
        -e 's/^((! )?> Accept-Encoding: deflate, gzip).*/\1/; s/(understands deflate, gzip), br, zstd/\1/' \
        -e '/Found bundle for host|Can not multiplex/d'
}
# Runs a command; prints it, its output, its messages and its exit code.
t() {
    echo "## $*" | hide
    "$@" > ../state/out 2> ../state/err; local code=$?
    hide < ../state/out
    [ -z "$(tail -c1 ../state/out)" ] || echo '\'
    sed 's/^/! /' ../state/err | tr -d '\r' | hide
    echo "-> $code"
}
# Prints what the server was asked since the last time.
asked() { tr -d '\r' < ../state/log | hide; : > ../state/log; }
