# SPDX-License-Identifier: GPL-2.0-only
"""Commands that the guests of a lab start on each other, as programs do by ssh. There
is no SSH daemon in guests: each takes command lines from a port that only the other
guests reach. Used by mpi.py and selftests/libfabric."""

PORT = 514
AGENT = "/usr/local/bin/ssh"
# [OPTION...] HOST COMMAND..., as mpirun and runfabtests.sh call ssh; it ends with the
# command's status, which comes in the last line.
SCRIPT = f"""#!/bin/bash
while [[ $1 == -* ]]; do
	[ "$1" = -o ] && shift
	shift
done
host=$1
shift
exec 3<>"/dev/tcp/$host/{PORT}"
echo "exec 2>&1; ( $*; ) </dev/null; set \\$?; echo; echo status \\$1; exit" >&3
while IFS= read -r line || [ -n "$line" ]; do
	[ -z "$held" ] || printf '%s\\n' "$last"
	last=$line held=yes
done <&3
[[ $last == "status "* ]] || exit 255
exit "${{last#status }}"
"""


def prepare(guests):
    """Let each guest start commands on the others, and on itself."""
    for guest in guests:
        guest.put(SCRIPT.encode(), AGENT, 0o755)
        guest.sh(f"ss -Hltn 'sport = :{PORT}' | grep -q . || setsid busybox "
                 f"nc -ll -p {PORT} -e /bin/bash >/dev/null 2>&1 </dev/null &")
    for guest in guests:
        guest.sh(f"until ss -Hltn 'sport = :{PORT}' | grep -q .; do "
                 "sleep 0.05; done")
