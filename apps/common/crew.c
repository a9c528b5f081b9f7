// SPDX-License-Identifier: GPL-2.0-only
#include "crew.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "util.h"

int crew_start(struct crew *crew)
{
	unsigned int i;
	pid_t pid;

	crew->pids = calloc(crew->size, sizeof(*crew->pids));
	if (!crew->pids) {
		snprintf(crew->error, sizeof(crew->error), "not enough memory for %u processes",
			 crew->size);
		return -1;
	}
	fflush(NULL);
	for (i = 0; i < crew->size; i++) {
		pid = fork();
		if (pid < 0) {
			snprintf(crew->error, sizeof(crew->error), "fork: %s", strerror(errno));
			return -1;
		}
		if (pid == 0) {
			if (prctl(PR_SET_PDEATHSIG, SIGKILL))
				_exit(1);
			_exit(crew->work(crew->run, i));
		}
		crew->pids[i] = pid;
	}
	return 0;
}

int crew_look(struct crew *crew)
{
	const char *error;
	unsigned int i;
	int status;
	pid_t pid;

	for (i = 0; i < crew->size; i++) {
		pid = crew->pids[i] ? waitpid(crew->pids[i], &status, WNOHANG) : 0;
		if (pid == 0)
			continue;
		if (pid < 0) {
			snprintf(crew->error, sizeof(crew->error), "waitpid: %s", strerror(errno));
			return -1;
		}
		crew->pids[i] = 0;
		crew->ended++;
		error = crew->error_of(crew->run, i);
		if (*error)
			snprintf(crew->error, sizeof(crew->error), "%s %u: %s", crew->name, i,
				 error);
		else if (WIFSIGNALED(status))
			snprintf(crew->error, sizeof(crew->error),
				 "%s %u was killed by signal %d (%s)", crew->name, i,
				 WTERMSIG(status), strsignal(WTERMSIG(status)));
		else if (WEXITSTATUS(status))
			snprintf(crew->error, sizeof(crew->error), "%s %u exited with code %d",
				 crew->name, i, WEXITSTATUS(status));
	}
	return crew->error[0] ? -1 : 0;
}

int crew_until(struct crew *crew, uint64_t end_ns, long nap_ns, int (*look)(void *run))
{
	while (now_ns() < end_ns) {
		nap(nap_ns);
		if (look(crew->run))
			return -1;
	}
	return 0;
}

void crew_kill(struct crew *crew)
{
	unsigned int i;

	for (i = 0; crew->pids && i < crew->size; i++) {
		if (!crew->pids[i])
			continue;
		kill(crew->pids[i], SIGKILL);
		waitpid(crew->pids[i], NULL, 0);
	}
	free(crew->pids);
	crew->pids = NULL;
}

void nap(long ns)
{
	nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
}

void print_line(const char *line)
{
	puts(line);
	fflush(stdout);
}

void crew_print_error(const struct crew *crew)
{
	if (crew->error[0])
		json_string(stdout, crew->error);
	else
		fputs("null", stdout);
}
