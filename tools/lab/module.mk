# SPDX-License-Identifier: GPL-2.0-only
# The lab needs no building; its own tests need no guest. Included by the top
# Makefile.

.PHONY: check-lab
check-lab:
	python3 tools/lab/tests/run.py
