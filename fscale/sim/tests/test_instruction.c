// SPDX-License-Identifier: GPL-2.0-only
#include <string.h>

#include "../instruction.h"
#include "../region.h"
#include "../../../tests/check.h"

/* As the assembler encodes them. */
static struct traits of(const char *bytes, size_t size)
{
	return instruction_traits((const unsigned char *)bytes, size);
}

#define OF(bytes) of(bytes, sizeof(bytes) - 1)

static void test_pause(void)
{
	CHECK(OF("\xf3\x90").pause);
	CHECK(!OF("\x90").pause);
	CHECK(!OF("\xf3\x90").string);
}

static void test_locked(void)
{
	CHECK(OF("\xf0\x0f\xb1\x17").locked);		    /* lock cmpxchg %edx,(%rdi) */
	CHECK(OF("\x3e\xf0\x48\x0f\xc1\x07").locked);	    /* ds lock xadd %rax,(%rdi) */
	CHECK(OF("\x87\x07").locked);			    /* xchg %eax,(%rdi) */
	CHECK(OF("\x65\x48\x87\x04\x25\0\0\0\0").locked);   /* xchg %rax,%gs:0 */
	CHECK(!OF("\x48\x87\xd8").locked);		    /* xchg %rbx,%rax */
	CHECK(!OF("\x0f\xb1\x17").locked);		    /* cmpxchg %edx,(%rdi) */
	CHECK(!OF("\x89\x07").locked);			    /* mov %eax,(%rdi) */
	CHECK(!OF("\xb8\xf0\xf0\xf0\xf0").locked);	    /* mov $0xf0f0f0f0,%eax */
}

static void test_string(void)
{
	CHECK(OF("\xf3\x48\xa5").string);   /* rep movsq */
	CHECK(OF("\xf3\xa4").string);	    /* rep movsb */
	CHECK(OF("\xf3\x48\xab").string);   /* rep stosq */
	CHECK(!OF("\xa5").string);	    /* movsl */
	CHECK(!OF("\xf3\x0f\xb8\xc0").string); /* popcnt %eax,%eax */
}

static void test_syscall(void)
{
	CHECK(OF("\x0f\x05").syscall);
	CHECK(!OF("\x48\x0f\x07").syscall); /* sysretq: it is charged with the call */
	CHECK(!OF("\x05\x0f\x05\x00\x00").syscall); /* add $0x50f,%eax */
}

static void test_prefixes_alone(void)
{
	CHECK(!OF("").locked);
	CHECK(!OF("\xf3").pause);
}

/* The bytes of the instructions as the compiler places them. */
static void test_region_code(void)
{
	static const unsigned char told[] = { 0x0f, 0x1f, 0x84, 0, ROI_OP, ROI_MAGIC };
	unsigned char other[8];

	CHECK_EQUAL(region_code(told, 8), ROI_OP);
	CHECK_EQUAL(region_code(told, 7), 0);
	for (size_t i = 0; i < 8; i++) {
		memcpy(other, told, 8);
		other[i] ^= 0x40;
		CHECK_EQUAL(region_code(other, 8), 0);
	}
}

#if defined(__x86_64__)
static void say_all(void)
{
	roi_mode_fast();
	roi_mode_ordered();
	roi_mode_detailed();
	roi_begin();
	roi_end();
	roi_op();
	roi_point(5);
	roi_seed(0xffffffff);
	roi_free(0);
	roi_work();
	ROI_TELL(ROI_CALL);
	ROI_TELL(ROI_RETURN);
	roi_pair(6);
}

/* A real CPU goes over them, and they are found in the code, numbers with their highest bit first. */
static void test_header(void)
{
	const unsigned char *code = (const unsigned char *)say_all;
	unsigned int seen[ROI_PAIR + 1] = { 0 }, last = 0;

	say_all();
	for (size_t i = 0; last != ROI_PAIR; i++) {
		unsigned int found = region_code(code + i, 8);

		if (found) {
			seen[found]++;
			last = found;
		}
	}
	for (unsigned int c = ROI_FAST; c <= ROI_PAIR; c++)
		CHECK(seen[c]);
}
#else
static void test_header(void)
{
}
#endif

int main(void)
{
	test_pause();
	test_locked();
	test_string();
	test_syscall();
	test_prefixes_alone();
	test_region_code();
	test_header();
	return 0;
}
