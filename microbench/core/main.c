// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "config.h"
#include "output.h"
#include "run.h"

int main(int argc, char **argv)
{
	static struct config cfg;
	static struct bench bench;
	int code = EXIT_GOOD;
	bool good;

	config_parse(&cfg, argc, argv);
	if (cfg.list) {
		good = output_list();
	} else {
		prctl(PR_SET_NAME, "fscale-bench");
		code = bench_run(&cfg, &bench);
		good = output_result(&bench);
	}
	if (!good) {
		fprintf(stderr, "fscale-bench: cannot write the result: %s\n", strerror(errno));
		return EXIT_FAILED;
	}
	return code;
}
