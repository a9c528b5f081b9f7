// SPDX-License-Identifier: GPL-2.0-only
/* The plugin: QEMU's callbacks, and the instrumentation of translated code. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "access.h"
#include "code.h"
#include "conflicts.h"
#include "hot.h"
#include "instruction.h"
#include "parameters.h"
#include "qemu.h"
#include "region.h"
#include "rules.h"
#include "schedule.h"
#include "shim.h"
#include "slab.h"
#include "statistics.h"

EXPORT int qemu_plugin_version = QEMU_PLUGIN_INTERFACE;
EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv);

/* Kernel addresses begin here; programs have lower ones. */
#define KERNEL(address) ((address) >> 63)

/* With an instruction's address in the data of a callback, in bits that are all 1 in the kernel. */
#define DATA_LOCKED (1ull << 62)
#define DATA_STRING (1ull << 61)
#define DATA_FLAGS (DATA_LOCKED | DATA_STRING)

static struct parameters params;
static qemu_plugin_id_t plugin;
static struct qemu_plugin_scoreboard *score, *blocks;
static FILE *out;
static enum mode wanted;

/* The executing vCPU accesses a kernel address of the guest. */
static bool read_guest(uint64_t address, void *to, size_t size)
{
	static struct byte_array *bytes;

	if (!bytes)
		bytes = g_byte_array_new();
	if (!qemu_plugin_read_memory_vaddr(address, bytes, size))
		return false;
	memcpy(to, bytes->data, size);
	return true;
}

static void give_up(const char *why)
{
	fprintf(stderr, "fscale-sim: %s\n", why);
	exit(2);
}

static void not_as_told(void)
{
	give_up("the guest has another number of vCPUs than vcpus=");
}

static void attach(qemu_plugin_id_t id, unsigned int c)
{
	(void)id;
	if (c >= params.vcpus)
		not_as_told();
	schedule_attach(c);
}

static void idle(qemu_plugin_id_t id, unsigned int c)
{
	(void)id;
	schedule_idle(c, true);
}

static void resume(qemu_plugin_id_t id, unsigned int c)
{
	(void)id;
	schedule_idle(c, false);
}

static void turn(unsigned int c, void *data)
{
	(void)data;
	schedule_turn(c);
}

static void pause_executed(unsigned int c, void *data)
{
	(void)data;
	access_pause(c);
}

/*
 * Without clocks all vCPUs run at once on few CPUs of the host, and each PAUSE takes a lock of QEMU:
 * vCPUs that wait for a lock of the guest would keep its holder from running.
 */
static void pause_in_fast(unsigned int c, void *data)
{
	static const struct timespec rest = { .tv_nsec = 1000000 };

	(void)c;
	(void)data;
	nanosleep(&rest, NULL);
}

/* Where in memory an access went; NULL: to a device, or nowhere. */
static struct qemu_plugin_hwaddr *in_memory(qemu_plugin_meminfo_t info, uint64_t vaddr)
{
	struct qemu_plugin_hwaddr *address = qemu_plugin_get_hwaddr(info, vaddr);

	return address && !qemu_plugin_hwaddr_is_io(address) ? address : NULL;
}

static void accessed(unsigned int c, qemu_plugin_meminfo_t info, uint64_t vaddr, void *data)
{
	uint64_t flags = ~(uint64_t)(uintptr_t)data & DATA_FLAGS;
	bool write = qemu_plugin_mem_is_store(info);
	struct qemu_plugin_hwaddr *address;

	if (flags & DATA_STRING && write)
		schedule_string(c, 1u << qemu_plugin_mem_size_shift(info));
	if (!KERNEL(vaddr))
		return;
	write |= !!(flags & DATA_LOCKED);
	if (conflicts_inside(c) && in_memory(info, vaddr))
		conflicts_access(c, vaddr, 1u << qemu_plugin_mem_size_shift(info), write,
				 (uint64_t)(uintptr_t)data | DATA_FLAGS);
	if (!access_hits(c, vaddr, write)) {
		address = in_memory(info, vaddr);
		if (!address)
			return;
		access_line(c, vaddr, qemu_plugin_hwaddr_phys_addr(address), write,
			    (uint64_t)(uintptr_t)data | DATA_FLAGS);
	}
	if (params.words)
		access_words(c, vaddr, 1u << qemu_plugin_mem_size_shift(info), write,
			     (uint64_t)(uintptr_t)data | DATA_FLAGS);
	if (flags & DATA_LOCKED)
		access_locked(c, vaddr);
}

static void change_mode(enum mode mode);

static void told(unsigned int c, void *data)
{
	enum roi_code code = (enum roi_code)(uintptr_t)data;

	switch (code) {
	case ROI_FAST:
		change_mode(MODE_FAST);
		break;
	case ROI_ORDERED:
		change_mode(MODE_ORDERED);
		break;
	case ROI_DETAILED:
		change_mode(MODE_DETAILED);
		break;
	default:
		region_told(c, code);
	}
}

static qemu_plugin_u64 entry(size_t offset)
{
	return (qemu_plugin_u64){ score, offset };
}

/* The counter for instructions of the block at `pc`. */
static qemu_plugin_u64 block_entry(uint64_t pc)
{
	size_t offset = offsetof(struct code_counters, block) + code_block(pc) * sizeof(uint64_t);

	return (qemu_plugin_u64){ blocks, offset };
}

/*
 * Instruments one instruction; returns what it costs beyond its CPI. *n is how
 * many there are in the block so far.
 */
static uint64_t instrument(struct qemu_plugin_insn *insn, uint64_t *n)
{
	uint64_t data = qemu_plugin_insn_vaddr(insn);
	unsigned char bytes[16];
	size_t size = qemu_plugin_insn_data(insn, bytes, sizeof(bytes));
	enum roi_code code = region_code(bytes, size);
	struct traits traits;

	if (code)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, told, QEMU_PLUGIN_CB_NO_REGS,
						       (void *)(uintptr_t)code);
	traits = instruction_traits(bytes, size);
	if (wanted == MODE_FAST) {
		if (traits.pause)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, pause_in_fast,
							       QEMU_PLUGIN_CB_NO_REGS, NULL);
		return 0;
	}
	/* Each step of a string instruction but the first is a block that begins with it. */
	*n += !(traits.string && !*n);
	if (traits.pause)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, pause_executed,
						       QEMU_PLUGIN_CB_NO_REGS, NULL);
	/* Programs share no memory here: only accesses of the kernel are simulated. */
	if (wanted == MODE_DETAILED && params.coherence && KERNEL(data)) {
		if (traits.locked)
			data &= ~DATA_LOCKED;
		if (traits.string)
			data &= ~DATA_STRING;
		qemu_plugin_register_vcpu_mem_cb(insn, accessed, QEMU_PLUGIN_CB_NO_REGS,
						 QEMU_PLUGIN_MEM_RW, (void *)(uintptr_t)data);
	}
	return (traits.pause ? params.cost_pause : 0) + (traits.locked ? params.cost_lock : 0) +
	       (traits.syscall ? params.cost_syscall : 0);
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t all = qemu_plugin_tb_n_insns(tb);
	uint64_t cycles = 0, n = 0;

	(void)id;
	for (size_t i = 0; i < all; i++)
		cycles += instrument(qemu_plugin_tb_get_insn(tb, i), &n);
	if (wanted == MODE_FAST)
		return;
	cycles += (n * params.cpi_milli + 500) / 1000;
	qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(
		tb, QEMU_PLUGIN_INLINE_ADD_U64, entry(offsetof(struct counters, instructions)), n);
	if (wanted == MODE_DETAILED)
		qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(
			tb, QEMU_PLUGIN_INLINE_ADD_U64,
			block_entry(qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, 0))), n);
	qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(
		tb, QEMU_PLUGIN_INLINE_ADD_U64, entry(offsetof(struct counters, fuel)), cycles);
	qemu_plugin_register_vcpu_tb_exec_cond_cb(tb, turn, QEMU_PLUGIN_CB_NO_REGS,
						  QEMU_PLUGIN_COND_GE,
						  entry(offsetof(struct counters, fuel)), FUEL_OUT,
						  NULL);
}

static void finish(qemu_plugin_id_t id, void *data)
{
	(void)id;
	(void)data;
	fprintf(out, "{\"type\":\"end\"}\n");
	fflush(out);
}

static void listen(qemu_plugin_id_t id)
{
	qemu_plugin_register_vcpu_init_cb(id, attach);
	qemu_plugin_register_vcpu_idle_cb(id, idle);
	qemu_plugin_register_vcpu_resume_cb(id, resume);
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, finish, NULL);
}

/* QEMU has dropped all translated code, and no vCPU executes any. */
static void changed(qemu_plugin_id_t id)
{
	static bool counting;
	char why[512];

	for (unsigned int c = 0; c < params.vcpus && !counting; c++) {
		if (!schedule_count(c, qemu_plugin_scoreboard_find(score, c)))
			not_as_told();
		code_count(c, qemu_plugin_scoreboard_find(blocks, c));
	}
	counting = true;
	if (wanted == MODE_DETAILED) {
		if (!rules_begin(params.rules, region_labels()->group, why, sizeof(why)))
			give_up(why);
		access_begin();
	}
	statistics_mode_ends(region_labels());
	statistics_reset();
	schedule_set_mode(wanted, region_labels()->seed);
	listen(id);
}

static void change_mode(enum mode mode)
{
	if (mode == wanted)
		return;
	wanted = mode;
	qemu_plugin_reset(plugin, changed);
}

static bool open_all(int argc, char **argv, char *why, size_t size)
{
	if (!parameters_read(&params, argc, argv, why, size))
		return false;
	schedule_open(&params);
	if (!shim_open()) {
		snprintf(why, size, "the plugin must also be in LD_PRELOAD");
		return false;
	}
	out = fopen(params.out, "w");
	if (!out) {
		snprintf(why, size, "%s: %s", params.out, strerror(errno));
		return false;
	}
	if (!access_open(&params) || !hot_open()) {
		snprintf(why, size, "not enough memory");
		return false;
	}
	if (params.knows_slab && qemu_plugin_read_memory_vaddr)
		slab_open(&params.slab, read_guest);
	statistics_open(&params, out);
	conflicts_open(out);
	fprintf(out, "{\"type\":\"parameters\",");
	parameters_print(&params, out);
	fprintf(out, "\"format\":1}\n");
	return !fflush(out);
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
	char why[512] = "the output cannot be written";

	(void)info;
	if (!open_all(argc, argv, why, sizeof(why))) {
		fprintf(stderr, "fscale-sim: %s\n", why);
		return -1;
	}
	plugin = id;
	score = qemu_plugin_scoreboard_new(sizeof(struct counters));
	blocks = qemu_plugin_scoreboard_new(sizeof(struct code_counters));
	listen(id);
	return 0;
}
