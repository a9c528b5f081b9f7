# SPDX-License-Identifier: GPL-2.0-only
"""Live validations of the comparison: how often it is wrong, and what it finds, on this machine.

They take a quiet machine and from half an hour to hours, so they are no part of the tests; an
interrupted one goes on when it is started again with the same arguments.
"""
