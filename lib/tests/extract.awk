# SPDX-License-Identifier: LGPL-2.1-or-later
# The C program between .nf and .fi of a man page's EXAMPLES section.
/^\.SH / { examples = ($0 ~ /EXAMPLE/) }
/^\.(fi|EE)/ { code = 0 }
examples && code {
	sub(/^\\&/, "")
	gsub(/\\-/, "-")
	gsub(/\\e/, "\\")
	gsub(/\\\(aq/, "'")
	print
	lines++
}
/^\.(nf|EX)/ { code = 1 }
END { if (!lines) exit 1 }
