# SPDX-License-Identifier: GPL-2.0-only
"""Exim's configuration: separate from the system's mail, no DNS, no ident, loopback only."""

from pathlib import Path

USER = "Debian-exim"  # compiled into Debian's build

# Each departure from Exim's defaults has its reason beside it, for the reader of a result.
_BODY = """\
# Names are ours and never looked up.
primary_hostname = fscale.invalid
qualify_domain = fscale.invalid
host_lookup =
helo_try_verify_hosts =
helo_lookup_domains =
rfc1413_hosts =
dkim_verify_signers =
# No TLS. A setting with a variable keeps each daemon from making a key pair (0.2 s) when it starts.
tls_advertise_hosts =
tls_certificate = $tls_in_sni
tls_verify_certificates = $tls_in_sni
dns_ipv4_lookup =
disable_ipv6 = true
local_interfaces = 127.0.0.1
# A port in use is an error at once, not after nine waits of 30 s.
daemon_startup_retries = 0
smtp_connect_backlog = 1024
# Any number of clients and messages over a connection; every message is delivered at once.
smtp_accept_max = 100000
smtp_accept_queue_per_connection = 0
smtp_accept_max_per_connection = 0
queue_run_max = 0
check_spool_space = 0
check_log_space = 0
# Deliveries run as Debian-exim in a forked child of the receiving process. Without this each
# would execute Exim anew (the paper removed one of two process invocations by a patch).
deliver_drop_privilege = true
keep_environment =
acl_smtp_rcpt = any

begin acl
any:
  accept

begin routers
local:
  driver = accept
  transport = mailbox

begin transports
mailbox:
  driver = appendfile
  # The number after the u, as a number: Exim refuses a file name taken from the message as it is.
  file = MAIL/${eval10:${substr_1:$local_part}}/mbox
  create_directory = false
  # One mail system only, so fcntl locks do; wait for them instead of sleeping 3 s.
  use_lockfile = false
  lock_fcntl_timeout = 60s

begin retry

begin rewrite
"""


def text(exim: str, spool: Path, mail: Path, log: Path, port: int, split: bool) -> str:
    """The configuration of the daemon on `port`; `split` is Exim's own split_spool_directory."""
    return f"""\
exim_path = {exim}
spool_directory = {spool}
MAIL = {mail}
log_file_path = {log}/%slog
pid_file_path = {log}/pid
daemon_smtp_ports = {port}
split_spool_directory = {str(split).lower()}
{_BODY}"""
