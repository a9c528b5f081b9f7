// SPDX-License-Identifier: GPL-2.0-only
#include "events.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "shm.h"

static int notice_fd = -1, signal_fd = -1;

int events_open(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &signals, NULL))
		return -1;
	signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signal_fd < 0)
		return -1;
	notice_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return notice_fd;
}

static enum event next_signal(void)
{
	struct signalfd_siginfo info;

	if (read(signal_fd, &info, sizeof(info)) != sizeof(info))
		return EVENT_ERROR;
	return info.ssi_signo == SIGCHLD ? EVENT_CHILD : EVENT_INTERRUPT;
}

static enum event next_notice(void)
{
	uint64_t count;

	if (read(notice_fd, &count, sizeof(count)) != sizeof(count))
		return EVENT_ERROR;
	return EVENT_NOTICE;
}

enum event events_wait(uint64_t deadline, int fd)
{
	struct pollfd fds[] = {
		{ .fd = signal_fd, .events = POLLIN },
		{ .fd = notice_fd, .events = POLLIN },
		{ .fd = fd, .events = POLLIN },
	};
	struct timespec timeout, *limit = NULL;
	int ready;

	if (deadline != NO_DEADLINE) {
		uint64_t now = now_ns(), left = deadline > now ? deadline - now : 0;

		timeout.tv_sec = (time_t)(left / 1000000000u);
		timeout.tv_nsec = (long)(left % 1000000000u);
		limit = &timeout;
	}
	do
		ready = ppoll(fds, 3, limit, NULL);
	while (ready < 0 && errno == EINTR);
	if (ready < 0)
		return EVENT_ERROR;
	if (!ready)
		return EVENT_DEADLINE;
	if (fds[0].revents)
		return next_signal();
	return fds[1].revents ? next_notice() : EVENT_FD;
}
