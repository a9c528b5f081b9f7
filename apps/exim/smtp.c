// SPDX-License-Identifier: GPL-2.0-only
#include "smtp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define REPLY_MAX 1024
#define EVENTS 64
#define PAUSED_MS 1 /* until clients that wait for deliveries look again */
#define IDLE_MS 50  /* until an idle process looks at the phase */

/* The command whose reply a client waits for. */
enum step { STEP_IDLE, STEP_CONNECT, STEP_HELO, STEP_MAIL, STEP_RCPT, STEP_DATA, STEP_DOT, STEP_QUIT };

static const struct {
	const char *name;
	const char *code;
} steps[] = {
	[STEP_CONNECT] = { "connect", "220" }, [STEP_HELO] = { "HELO", "250" },
	[STEP_MAIL] = { "MAIL", "250" },       [STEP_RCPT] = { "RCPT", "250" },
	[STEP_DATA] = { "DATA", "354" },       [STEP_DOT] = { "the message", "250" },
	[STEP_QUIT] = { "QUIT", "221" },
};

struct client {
	int fd;
	enum step step;
	bool paused;       /* connected, and not allowed to send the next message yet */
	unsigned int id;
	unsigned int sent; /* messages over this connection */
	unsigned long box; /* next mail box, in turn */
	uint16_t port;
	size_t have;
	char reply[REPLY_MAX];
};

struct process {
	const struct load *load;
	struct shared *shared;
	struct generator *self;
	struct client *clients;
	unsigned int count;
	unsigned int open; /* clients with a connection */
	int epoll;
	uint64_t random;
	char *body;
	size_t body_length;
};

__attribute__((format(printf, 2, 3))) static int fail(struct process *p, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(p->self->error, sizeof(p->self->error), format, args);
	va_end(args);
	return -1;
}

static bool may_send(const struct process *p)
{
	unsigned long accepted = atomic_load_explicit(&p->shared->accepted, memory_order_relaxed);
	unsigned long delivered = atomic_load_explicit(&p->shared->delivered, memory_order_relaxed);

	return accepted < delivered + p->load->backlog;
}

static bool running(const struct process *p)
{
	return atomic_load_explicit(&p->shared->phase, memory_order_relaxed) == PHASE_RUN;
}

static int send_line(struct process *p, struct client *c, enum step step, const char *text,
		     size_t length)
{
	ssize_t n = send(c->fd, text, length, MSG_NOSIGNAL);

	if (n < 0)
		return fail(p, "cannot send %s to port %u: %s", steps[step].name, c->port, strerror(errno));
	if ((size_t)n != length)
		return fail(p, "sent only %zd of %zu bytes of %s to port %u", n, length,
			    steps[step].name, c->port);
	c->step = step;
	return 0;
}

static int open_connection(struct process *p, struct client *c)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = c };
	int one = 1;

	c->port = p->load->ports[draw_below(&p->random, p->load->nports)];
	to.sin_port = htons(c->port);
	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0)
		return fail(p, "socket: %s", strerror(errno));
	if (setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
		return fail(p, "TCP_NODELAY: %s", strerror(errno));
	if (connect(c->fd, (struct sockaddr *)&to, sizeof(to)))
		return fail(p, "cannot connect to port %u: %s", c->port, strerror(errno));
	if (epoll_ctl(p->epoll, EPOLL_CTL_ADD, c->fd, &event))
		return fail(p, "epoll_ctl: %s", strerror(errno));
	c->step = STEP_CONNECT;
	c->sent = 0;
	c->have = 0;
	p->open++;
	return 0;
}

static int close_connection(struct process *p, struct client *c)
{
	int closed = close(c->fd);

	c->fd = -1;
	c->step = STEP_IDLE;
	p->open--;
	return closed ? fail(p, "close: %s", strerror(errno)) : 0;
}

/*
 * Exim 4.96 leaves its answer to QUIT in a corked socket, which the kernel holds back for 200 ms
 * unless the connection is closed. It is when Exim sees that we have nothing more to say.
 */
static int quit(struct process *p, struct client *c)
{
	if (send_line(p, c, STEP_QUIT, "QUIT\r\n", 6))
		return -1;
	return shutdown(c->fd, SHUT_WR) ? fail(p, "shutdown: %s", strerror(errno)) : 0;
}

/* The next message, a pause, or the end of this connection. */
static int next_message(struct process *p, struct client *c)
{
	char line[64];
	int n;

	c->paused = false;
	if (!running(p) || c->sent == p->load->per_connection)
		return quit(p, c);
	if (!may_send(p)) {
		c->paused = true;
		return 0;
	}
	n = snprintf(line, sizeof(line), "MAIL FROM:<c%u@fscale.invalid>\r\n", c->id);
	return send_line(p, c, STEP_MAIL, line, (size_t)n);
}

static int on_reply(struct process *p, struct client *c)
{
	char line[64];
	int n;

	if (strncmp(c->reply, steps[c->step].code, 3)) {
		c->reply[strcspn(c->reply, "\r\n")] = '\0';
		return fail(p, "Exim answered %s with: %s", steps[c->step].name, c->reply);
	}
	switch (c->step) {
	case STEP_CONNECT:
		return send_line(p, c, STEP_HELO, "HELO client.invalid\r\n", 21);
	case STEP_HELO:
		return next_message(p, c);
	case STEP_MAIL:
		n = snprintf(line, sizeof(line), "RCPT TO:<u%lu@fscale.invalid>\r\n",
			     (unsigned long)c->id * p->load->boxes + c->box++ % p->load->boxes);
		return send_line(p, c, STEP_RCPT, line, (size_t)n);
	case STEP_RCPT:
		return send_line(p, c, STEP_DATA, "DATA\r\n", 6);
	case STEP_DATA:
		return send_line(p, c, STEP_DOT, p->body, p->body_length);
	case STEP_DOT:
		atomic_fetch_add_explicit(&p->self->accepted, 1, memory_order_relaxed);
		atomic_fetch_add_explicit(&p->shared->accepted, 1, memory_order_relaxed);
		c->sent++;
		return next_message(p, c);
	case STEP_QUIT:
		if (close_connection(p, c))
			return -1;
		return running(p) ? open_connection(p, c) : 0;
	case STEP_IDLE:
		break;
	}
	return fail(p, "port %u sent an unexpected reply: %s", c->port, c->reply);
}

static int on_input(struct process *p, struct client *c)
{
	ssize_t n = recv(c->fd, c->reply + c->have, REPLY_MAX - 1 - c->have, 0);

	if (n < 0)
		return fail(p, "cannot read the reply to %s: %s", steps[c->step].name, strerror(errno));
	if (n == 0)
		return fail(p, "port %u closed the connection before its reply to %s", c->port,
			    steps[c->step].name);
	c->have += (size_t)n;
	c->reply[c->have] = '\0';
	if (c->reply[c->have - 1] != '\n') {
		if (c->have == REPLY_MAX - 1)
			return fail(p, "the reply to %s is longer than %d bytes",
				    steps[c->step].name, REPLY_MAX - 2);
		return 0;
	}
	c->have = 0;
	if (c->paused)
		return fail(p, "port %u sent without a request: %s", c->port, c->reply);
	return on_reply(p, c);
}

/* Headers are Exim's work; the body is lines of at most 64 characters. */
static int make_body(struct process *p)
{
	size_t size = p->load->size, i, at;
	static const char head[] = "Subject: fscale\r\n\r\n";

	p->body = malloc(sizeof(head) + size + size / 64 * 2 + 16);
	if (!p->body)
		return fail(p, "not enough memory for the message");
	at = sizeof(head) - 1;
	memcpy(p->body, head, at);
	for (i = 0; i < size; i++) {
		if (i && i % 64 == 0) {
			p->body[at++] = '\r';
			p->body[at++] = '\n';
		}
		p->body[at++] = 'x';
	}
	memcpy(p->body + at, "\r\n.\r\n", 5);
	p->body_length = at + 5;
	return 0;
}

static int wake_paused(struct process *p, unsigned int *paused)
{
	unsigned int i;

	*paused = 0;
	for (i = 0; i < p->count; i++) {
		if (p->clients[i].paused && next_message(p, &p->clients[i]))
			return -1;
		*paused += p->clients[i].paused;
	}
	return 0;
}

static int serve(struct process *p)
{
	struct epoll_event events[EVENTS];
	unsigned int paused = 0;
	int i, n;

	while (p->open) {
		n = epoll_wait(p->epoll, events, EVENTS, paused ? PAUSED_MS : IDLE_MS);
		if (n < 0 && errno != EINTR)
			return fail(p, "epoll_wait: %s", strerror(errno));
		if (atomic_load(&p->shared->phase) == PHASE_ABORT)
			return fail(p, "stopped");
		for (i = 0; i < n; i++)
			if (on_input(p, events[i].data.ptr))
				return -1;
		if (wake_paused(p, &paused))
			return -1;
		atomic_store_explicit(&p->self->cpu_ns, own_cpu_ns(), memory_order_relaxed);
	}
	return 0;
}

static int start_clients(struct process *p, unsigned int index)
{
	unsigned int i, n = 0;

	p->count = (p->load->clients - index + p->load->processes - 1) / p->load->processes;
	p->clients = calloc(p->count, sizeof(*p->clients));
	if (!p->clients)
		return fail(p, "not enough memory for %u clients", p->count);
	for (i = index; i < p->load->clients; i += p->load->processes, n++) {
		p->clients[n].id = i;
		if (open_connection(p, &p->clients[n]))
			return -1;
	}
	return 0;
}

int generate(const struct load *load, struct shared *shared, unsigned int index)
{
	struct process p = { .load = load,
			     .shared = shared,
			     .self = &shared->generator[index],
			     .random = draw_seed(load->seed, index) };
	int failed = 1;

	p.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (p.epoll < 0) {
		fail(&p, "epoll_create1: %s", strerror(errno));
		goto out;
	}
	if (make_body(&p) || start_clients(&p, index) || serve(&p))
		goto out;
	failed = 0;
out:
	free(p.body);
	free(p.clients);
	if (p.epoll >= 0)
		close(p.epoll);
	return failed;
}
