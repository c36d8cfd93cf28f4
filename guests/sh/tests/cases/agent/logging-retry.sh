log() { local level=$1; shift; printf '[%s] %s\n' "$level" "$*"; }
retry() { local n=0 max=$1; shift; until "$@"; do n=$((n+1)); if ((n>=max)); then log ERROR "failed after $n"; return 1; fi; log WARN "attempt $n failed"; done; log INFO ok; }
count=0; flaky() { ((++count >= 3)); }; retry 5 flaky; retry 2 false || echo "gave up $?"
