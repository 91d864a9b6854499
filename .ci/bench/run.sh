#!/usr/bin/env bash
# Measures what Weir costs beside bare Caddy; see main.go for the method and the flags.
#
#   bash .ci/bench/run.sh            all figures, about 7 minutes
#   bash .ci/bench/run.sh -short     a look, about 1 minute
#   bash .ci/bench/run.sh -json      for programs
#
# With -binary FILE that binary is measured; else ./cmd/weir is built.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

binary=
for arg in "$@"; do
	case $arg in -binary | --binary | -binary=* | --binary=*) binary=given ;; esac
done
if [ -z "$binary" ]; then
	(cd "$root" && go build -trimpath -o "$work/weir" ./cmd/weir) || {
		echo "run.sh: cmd/weir does not build; mend it, or name a binary with -binary FILE" >&2
		exit 1
	}
	set -- -binary "$work/weir" "$@"
fi
(cd "$here" && go build -o "$work/bench" .)
"$work/bench" "$@"
