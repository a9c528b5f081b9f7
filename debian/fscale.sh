#!/usr/lib/fscale/bin/python3 -I
# SPDX-License-Identifier: GPL-2.0-only
from fscale.__main__ import main

main()
