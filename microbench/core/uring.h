/* SPDX-License-Identifier: GPL-2.0-only */
/* Writing blocks of one file by io_uring, with some requests in flight. */
#ifndef FSCALE_URING_H
#define FSCALE_URING_H

#include <errno.h>
#include <liburing.h>

#include "blockio.h"

#define URING_DEPTH_MAX 256

extern const struct option_desc uring_options[];

struct uring {
	struct io_uring ring;
	struct blockio io;		/* its offset: of the first request's block */
	unsigned int depth, flying;
	unsigned int idle[URING_DEPTH_MAX];	/* requests: the first `flying` places are void */
};

/*
 * Open the ring and the file `path`, whose blocks from number `first` on, one a request, are laid
 * out. Where the kernel has no io_uring, or denies it, the run is skipped.
 */
enum outcome uring_open(struct worker *w, struct uring *u, const char *path, unsigned int first);

static inline unsigned int uring_depth(const struct worker *w)
{
	return (unsigned int)option_number(w, "depth");
}

static inline enum outcome uring_failed(struct worker *w, const char *call, int rc)
{
	errno = -rc;
	return worker_fail(w, call, NULL);
}

static inline void uring_prepare(struct uring *u, unsigned int request)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);

	io_uring_prep_write(sqe, u->io.fd, u->io.buf, (unsigned int)u->io.size,
			    (uint64_t)u->io.offset + (uint64_t)request * u->io.size);
	io_uring_sqe_set_data64(sqe, request);
}

/* One operation: submit what is idle, and wait for one completion. */
static inline enum outcome uring_write(struct worker *w, struct uring *u)
{
	struct io_uring_cqe *cqe;
	int rc;

	for (; u->flying < u->depth; u->flying++)
		uring_prepare(u, u->idle[u->flying]);
	rc = io_uring_submit_and_wait(&u->ring, 1);
	if (__builtin_expect(rc < 0, 0))
		return uring_failed(w, "io_uring_enter", rc);
	rc = io_uring_peek_cqe(&u->ring, &cqe);
	if (__builtin_expect(rc < 0, 0))
		return uring_failed(w, "io_uring_peek_cqe", rc);
	if (__builtin_expect(cqe->res != (int)u->io.size, 0)) {
		errno = cqe->res < 0 ? -cqe->res : 0;
		return worker_short(w, "io_uring write", u->io.path, cqe->res < 0 ? -1 : cqe->res,
				    (long)u->io.size);
	}
	u->idle[--u->flying] = (unsigned int)io_uring_cqe_get_data64(cqe);
	io_uring_cqe_seen(&u->ring, cqe);
	return OP_OK;
}

#endif
