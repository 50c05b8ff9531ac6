#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Runs the tests of fabrexctl in the directory $1; TAP on stdout, status 0 if
# all of them passed. With VALGRIND=1 under valgrind, where that exists.
dir=$1
here=$(dirname "$0")
status=0
under=
[ -n "$VALGRIND" ] && under="valgrind -q --error-exitcode=99 --leak-check=full \
	--errors-for-leak-kinds=definite"
for test in "$dir"/test_*; do
	case $test in *.o | *.d) continue ;; esac
	echo "# $(basename "$test")"
	$under "$test" || status=1
done
echo "# completion.sh"
bash "$here/completion.sh" "$dir" || status=1
echo "# examples.sh"
bash "$here/examples.sh" "$dir" || status=1
exit $status
