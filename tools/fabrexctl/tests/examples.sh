#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The examples of the planner's manual pages, of list, doctor and stats, run as printed on the small test
# fabric in $1; what needs a fabric that stays composed is left to the guests.
dir=$(cd "$1" && pwd) || exit 1
man=$(cd "$(dirname "$0")/../man" && pwd) || exit 1
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
PATH=$dir/bin:$PATH
mkdir -p "$dir/bin"
ln -sf "$dir/fabrexctl-fake" "$dir/bin/fabrexctl"
cd "$tmp" || exit 1
n=0
failed=0

run()
{
	n=$((n + 1))
	if out=$(bash -c "$1" 2>&1); then
		echo "ok $n - ${1%%$'\n'*}"
	else
		echo "not ok $n - ${1%%$'\n'*}"
		echo "# $out" | head -5
		failed=1
	fi
}

for page in fabrexctl-topology.8 fabrexctl-plan-collective.8 fabrexctl-stats.8 \
	fabrexctl-list.8 fabrexctl-doctor.8; do
	command=
	while IFS= read -r line; do
		line=${line//\\-/-}
		line=${line//\\\\/\\}
		command=$command${command:+$'\n'}$line
		[[ $command == *"<<END"* && $line != END ]] && continue
		[[ $command == *live* || $command == *compose* ]] ||
			run "$command"
		command=
	done < <(sed -n '/^\.SH EXAMPLES/,/^\.EE/{/^\./d;p}' "$man/$page")
done
[ $n -ge 10 ] || failed=1
echo "1..$n"
exit $failed
