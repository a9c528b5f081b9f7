// SPDX-License-Identifier: GPL-2.0-only
/*
 * Finds the kernel's direct map and page array, by which the slab object of an address is found.
 *
 * Both lie at random addresses (CONFIG_RANDOMIZE_MEMORY), and not every kernel lists the symbols
 * that contain them in kallsyms. So they are computed from tracepoints. A kmalloc of more than two
 * pages is a page allocation, so kmem:mm_page_alloc (frame number) and kmem:kmalloc (address) of one
 * thread belong together. pagemap:mm_lru_insertion has the number of a frame and the address of its
 * folio.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory.h"
#include "program.h"

#define PROGRAMS 3
#define PAIRS 64 /* enough that nearly all agree, even if a few are spoiled */
#define LEAST 2
#define AGREE 90 /* percent */

/*
 * Make the kernel allocate pipe slots that are too large for a slab, and pages for the LRU lists.
 *
 * The slots of a pipe, 40 bytes per page of the pipe, are one kmalloc, which can exceed two pages of
 * any page size. The pages of the pipe are not allocated, because nothing is written to it.
 */
static bool provoke(int page)
{
	const size_t length = page > 16384 ? 256 * (size_t)page : 4 << 20;
	bool done = false;
	int ends[2];
	char *pages;

	if (pipe(ends))
		return false;
	for (int i = 0; i < PAIRS; i++)
		if (fcntl(ends[0], F_SETPIPE_SZ, page) < 0 ||
		    fcntl(ends[0], F_SETPIPE_SZ, page / 16 * page) < 0)
			goto out;
	/* mmap gives new pages; malloc may reuse memory that is already allocated. */
	pages = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED)
		goto out;
	memset(pages, 1, length);
	done = !munmap(pages, length);
out:
	close(ends[0]);
	close(ends[1]);
	return done;
}

/* The address that nearly all events of a kind agree on, or 0. */
static unsigned long long agreed(int fd, unsigned long long kind)
{
	struct base base, *before = NULL;
	uint64_t seen, most = 0, total = 0;
	unsigned long long address = 0;

	while (!bpf_map_get_next_key(fd, before, &base)) {
		before = &base;
		if (base.kind != kind || bpf_map_lookup_elem(fd, &base, &seen))
			continue;
		total += seen;
		if (seen > most) {
			most = seen;
			address = base.address;
		}
	}
	return most >= LEAST && 100 * most >= AGREE * total ? address : 0;
}

bool find_memory(struct memory *m)
{
	struct bpf_object *object = program_open(memory_begin, memory_end, m, sizeof(*m));
	struct bpf_link *links[PROGRAMS] = { NULL };
	struct bpf_program *program;
	int attached = 0, fd;

	bpf_object__for_each_program(program, object) {
		links[attached] = bpf_program__attach(program);
		if (!links[attached++])
			goto out;
	}
	if (!provoke((int)sysconf(_SC_PAGESIZE)))
		goto out;
	fd = program_map(object, "bases");
	m->direct_map = agreed(fd, DIRECT_MAP);
	m->page_array = agreed(fd, PAGE_ARRAY);
	if (!m->direct_map || !m->page_array)
		m->direct_map = m->page_array = 0;
out:
	for (int i = 0; i < PROGRAMS; i++)
		bpf_link__destroy(links[i]);
	bpf_object__close(object);
	return m->direct_map;
}
