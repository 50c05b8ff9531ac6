#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The completion script in a real bash, on the small test fabric in $1.
dir=$(cd "$1" && pwd) || exit 1
n=0
failed=0

point()
{
	n=$((n + 1))
	if [ "$2" = "$3" ]; then
		echo "ok $n - $1"
	else
		echo "not ok $n - $1"
		echo "# expected: $2"
		echo "# got:      $3"
		failed=1
	fi
}

# What TAB offers at the end of a line, in one line.
offers()
{
	COMP_LINE=$1
	COMP_POINT=${#1}
	COMPREPLY=()
	_fabrexctl
	echo "${COMPREPLY[*]}"
}

# compopt works only while bash itself completes.
compopt() { :; }
PATH=$dir/bin:$PATH
mkdir -p "$dir/bin"
ln -sf "$dir/fabrexctl-fake" "$dir/bin/fabrexctl"
COMP_WORDBREAKS=$' \t\n"\'><=;|&(:'
eval "$(fabrexctl completion bash)" || exit 1

point "commands" "compose completion" "$(offers 'fabrexctl comp')"
point "endpoint names" "columba2.gpu0 columba2.gpu1 columba2.gpu2 columba2.gpu3" \
	"$(offers 'fabrexctl compose columba2.g')"
point "a word is not offered twice" "columba2.gpu1" \
	"$(offers 'fabrexctl compose columba2.gpu0 columba2.gpu2 columba2.gpu3 columba2.gpu')"
point "hosts and their ports" "a a.0" "$(offers 'fabrexctl compose gpu --to a')"
point "an option's value behind =" "a a.0" \
	"$(offers 'fabrexctl compose gpu --to=a')"
point "names with a colon" "4 5 6" "$(offers 'fabrexctl port draco1:')"
point "ends of a pair" "a.0" "$(offers 'fabrexctl p2p a')"
point "this machine" "machine" "$(offers 'fabrexctl list mach')"
point "kinds of devices" "upstream-port" \
	"$(offers 'fabrexctl list devices --kind up')"
point "the doctor" "doctor" "$(offers 'fabrexctl doc')"
point "stats of links" "--links" "$(offers 'fabrexctl stats --li')"
point "port actions" "enable" "$(offers 'fabrexctl port a.0 e')"
point "options" "--to" "$(offers 'fabrexctl compose --to')"
point "verbs" "compare" "$(offers 'fabrexctl topology comp')"
point "live or a file" "live" "$(offers 'fabrexctl topology show liv')"
point "options of the verb" "--switches --switch-ports" \
	"$(offers 'fabrexctl topology design --switch')"
point "and not of others" "" "$(offers 'fabrexctl topology show --switch')"
point "collectives" "all-gather all-reduce" \
	"$(offers 'fabrexctl plan-collective x --collective all')"
point "words of the verb's own option" "rings" \
	"$(offers 'fabrexctl topology draw x --schedule r')"
point "formats" "rccl" "$(offers 'fabrexctl topology export --format=r')"
point "nothing where nothing can be" "" "$(offers 'fabrexctl version x')"
cd "$dir/bin" || exit 1
: > wish.conf
point "files" "wish.conf" "$(offers 'fabrexctl apply wi')"
point "files for the same option elsewhere" "wish.conf" \
	"$(offers 'fabrexctl plan-collective x --schedule wi')"
rm -f wish.conf
echo "1..$n"
exit $failed
