// SPDX-License-Identifier: GPL-2.0-only
#include <string.h>

#include "../parameters.h"
#include "../../../tests/check.h"

static char *good[] = {
	"out=/tmp/x",	       "rules=/tmp/y", "vcpus=80",	"memory_mib=4096",  "clock_mhz=2000",
	"cpi_milli=1000",      "cores_per_socket=10", "quantum=200", "quantum_ordered=3000",
	"slice_max=2000",      "lat_clean=40",	"lat_clean_remote=200", "lat_dirty=100",
	"lat_dirty_remote=300", "lat_upgrade=60", "lat_upgrade_remote=200", "lat_memory=180",
	"occupy_shared=15", "overlap=41", "migratory=1",    "cost_lock=18",	"cost_pause=40", "cost_syscall=240",    "string_bytes=32",
	"park=3000",	       "grace=60",	"graces=2",	    "boot_slowdown=20",
	"coherence=1",	       "queueing=0",	"skew=0",	    "hot_lines=16", "words=1",
};

#define GOOD ((int)(sizeof(good) / sizeof(*good)))

static struct parameters p;
static char why[256];

/* All good ones, with `extra` after them. */
static bool with(const char *extra)
{
	char *argv[GOOD + 1], copy[256];

	memcpy(argv, good, sizeof(good));
	snprintf(copy, sizeof(copy), "%s", extra);
	argv[GOOD] = copy;
	return parameters_read(&p, GOOD + 1, argv, why, sizeof(why));
}

static void test_good(void)
{
	CHECK(parameters_read(&p, GOOD, good, why, sizeof(why)));
	CHECK_EQUAL(p.vcpus, 80);
	CHECK_EQUAL(p.lat_clean, 40);
	CHECK_EQUAL(p.lat_clean_remote, 200);
	CHECK_EQUAL(p.queueing, 0);
	CHECK(!strcmp(p.out, "/tmp/x"));
	CHECK(!strcmp(p.rules, "/tmp/y"));
}

static void test_each_is_needed(void)
{
	for (int missing = 0; missing < GOOD; missing++) {
		char *argv[GOOD], name[64];
		int n = 0;

		for (int i = 0; i < GOOD; i++) {
			if (i != missing)
				argv[n++] = good[i];
		}
		CHECK(!parameters_read(&p, n, argv, why, sizeof(why)));
		snprintf(name, sizeof(name), "%.*s is missing",
			 (int)strcspn(good[missing], "="), good[missing]);
		CHECK(!strcmp(why, name));
	}
}

static void test_wrong_ones(void)
{
	static const char *const wrong[] = {
		"vcpus",    "vcpus=",	     "vcpus=0",	  "vcpus=257",	   "vcpus=-1", "vcpus= 1",
		"vcpus=4x", "vcpus=0x10",    "nothing=1", "quantu=1",	   "quantums=1", "=1",
		"",	    "out=",	     "coherence=2", "quantum=99999999999999999999",
		"rules=",
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		CHECK(!with(wrong[i]));
		CHECK(strstr(why, wrong[i]));
	}
}

int main(void)
{
	test_good();
	test_each_is_needed();
	test_wrong_ones();
	return 0;
}
