// SPDX-License-Identifier: GPL-2.0-only
#include "config.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cpulist.h"
#include "nearest.h"

static const char help[] =
"Usage: fscale-bench --list\n"
"       fscale-bench --workload ID --dir DIR --cpus LIST [OPTION]...\n"
"\n"
"Runs one microbenchmark in DIR, an empty directory, with one or more pinned\n"
"workers (processes or threads) per CPU, and prints one JSON object.\n"
"\n"
"  --list                 print the workloads and their options as JSON\n"
"  --workload ID          workload to run, such as DRBL\n"
"  --dir DIR              empty directory to run in; what the run creates there stays there\n"
"  --cpus LIST            CPUs to run on, such as 0,2-5\n"
"  --workers-per-cpu N    workers on each CPU (1); a background writer has a CPU of its own\n"
"  --mode MODE            buffered (default), direct or dontcache\n"
"  --duration SEC         timed seconds (5)\n"
"  --warmup SEC           untimed seconds before them (0.2)\n"
"  --min-window SEC       shortest timed window that is trusted, in seconds (0.02)\n"
"  --interval SEC         length in seconds of the intervals that are counted apart (0.1)\n"
"  --seed N               random seed of the workload (1)\n"
"  --option NAME=VALUE    set an option of the workload; --list shows them\n"
"  --max-stock N          largest stock of a consuming workload, in units per worker (1048576)\n"
"  --space BYTES          bytes that all stocks together may take (default: 3/4 of the free space)\n"
"  --inodes N             inodes that all stocks together may take (default: 9/10 of the free ones)\n"
"  --cgroup DIR           join this cgroup (v2) and record its CPU time\n"
"  --latency DIR          write a histogram of each worker's latencies to DIR/worker-<id>.hist\n"
"  --counter FILE         report by how much the number in FILE grew; up to 8 times\n"
"  --sync-fds R,W         after set-up write \"ready\" to fd W, wait for a byte on fd R\n"
"  --slice SEC            with --sync-fds: execute operations for SEC seconds for each byte that\n"
"                         comes on fd R, report each slice on fd W, and end when fd R ends;\n"
"                         --duration sizes the stock\n"
"  --settle               call syncfs() after each slice, so that no write-back is left for later\n"
"  --windows N            N windows of a fixed number of operations instead of timed ones, with\n"
"                         marks for a simulator; the result has one window and no CPU times\n"
"  --window-ops N         operations of each of these windows, all workers together (512)\n"
"  --window-ns N          nanoseconds that each of these windows takes at least (200000)\n"
"  --precision N          leave out windows when the half-width of the 95% band of the rate is at\n"
"                         most N thousandths of it; at most 96 windows\n"
"  --roi P,S,F            point, random seed and group of free objects, for the simulator\n"
"\n"
"Exit status: 0 good, 1 failed or invalid, 2 wrong use, 3 interrupted, 77 the file\n"
"system does not support the workload.\n"
"\n"
"Example: fscale-bench --workload MWCL --dir /mnt/test --cpus 0-3 --duration 10\n";

void usage_error(const char *format, ...)
{
	va_list args;

	fputs("fscale-bench: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(EXIT_USAGE);
}

static double seconds(const char *option, const char *text, bool zero)
{
	char *end;
	double value;

	errno = 0;
	value = strtod(text, &end);
	if (errno || end == text || *end || !(value >= 0 && value <= 1e6) || (!zero && value == 0))
		usage_error("--%s takes seconds, %s; it was given \"%s\"", option,
			    zero ? "0 or more" : "more than 0", text);
	return value;
}

static uint64_t number(const char *option, const char *text, uint64_t min, uint64_t max)
{
	char *end;
	unsigned long long value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || !isdigit((unsigned char)*text) || *end || value < min || value > max)
		usage_error("--%s takes a whole number from %llu to %llu; it was given \"%s\"", option,
			    (unsigned long long)min, (unsigned long long)max, text);
	return value;
}

static enum mode mode_parse(const char *text)
{
	for (unsigned int mode = 0; mode < MODES; mode++)
		if (!strcmp(mode_names[mode], text))
			return mode;
	usage_error("--mode takes buffered, direct or dontcache; it was given \"%s\"", text);
}

static const struct workload *workload_parse(const char *id)
{
	const struct workload *wl = workload_find(id);
	char near[256];

	if (wl)
		return wl;
	nearest_workloads(id, near, sizeof(near));
	usage_error("there is no workload \"%s\"; did you mean %s? `fscale-bench --list` shows all",
		    id, near);
}

static void sync_fds_parse(struct config *cfg, const char *text)
{
	char rest;

	if (sscanf(text, "%d,%d%c", &cfg->sync_read, &cfg->sync_write, &rest) != 2 ||
	    cfg->sync_read < 0 || cfg->sync_write < 0)
		usage_error("--sync-fds takes two open file descriptors as R,W; it was given \"%s\"", text);
}

static void counter_add(struct config *cfg, const char *path)
{
	if (cfg->ncounters == COUNTERS_MAX)
		usage_error("--counter can be given at most %d times", COUNTERS_MAX);
	cfg->counters[cfg->ncounters++] = path;
}

static void roi_parse(struct config *cfg, const char *text)
{
	struct roi *roi = &cfg->roi;
	char rest;

	if (sscanf(text, "%" SCNu32 ",%" SCNu32 ",%" SCNu32 "%c", &roi->point, &roi->seed, &roi->free,
		   &rest) != 3)
		usage_error("--roi takes three numbers as POINT,SEED,FREE; it was given \"%s\"", text);
}

/* The number of a choice. */
static unsigned int option_choose(const struct config *cfg, const struct option_desc *option,
				  const char *text)
{
	for (unsigned int i = 0; option->choices[i]; i++)
		if (!strcmp(option->choices[i], text))
			return i;
	usage_error("option %s of %s cannot be \"%s\"; `fscale-bench --list` shows its choices",
		    option->name, cfg->workload->id, text);
}

static long long option_count(const struct config *cfg, const struct option_desc *option,
			      const char *text)
{
	long long value;
	char *end;

	errno = 0;
	value = strtoll(text, &end, 10);
	if (errno || end == text || *end || value < option->min || value > option->max ||
	    (option->multiple_of && value % option->multiple_of))
		usage_error("option %s of %s takes a whole number from %lld to %lld%s; it was given \"%s\"",
			    option->name, cfg->workload->id, option->min, option->max,
			    option->multiple_of ? " and a multiple of 512" : "", text);
	return value;
}

static void option_set(struct config *cfg, const struct option_desc *option, unsigned int index,
		       const char *text)
{
	union option_value *value = &cfg->options[index];

	if (option->choices)
		value->text = option->choices[option_choose(cfg, option, text)];
	else
		value->number = option_count(cfg, option, text);
}

static void common_set(struct config *cfg, enum common which, const char *text)
{
	const struct option_desc *option = &common_options[which];

	switch (which) {
	case COMMON_WORKERS: cfg->crew = option_choose(cfg, option, text); break;
	case COMMON_RATE: cfg->rate = (uint64_t)option_count(cfg, option, text); break;
	case COMMON_ARRIVAL: cfg->arrival = option_choose(cfg, option, text); break;
	case COMMON_OPTIONS: break;
	}
}

static bool option_is(const struct option_desc *option, const char *name, size_t length)
{
	return strlen(option->name) == length && !strncmp(option->name, name, length);
}

static void option_parse(struct config *cfg, const char *text)
{
	const struct option_desc *options = cfg->workload->options;
	const char *equals = strchr(text, '=');

	if (!equals)
		usage_error("--option takes NAME=VALUE; it was given \"%s\"", text);
	for (unsigned int i = 0; i < COMMON_OPTIONS; i++)
		if (option_is(&common_options[i], text, (size_t)(equals - text))) {
			common_set(cfg, i, equals + 1);
			return;
		}
	for (unsigned int i = 0; options && options[i].name; i++)
		if (option_is(&options[i], text, (size_t)(equals - text))) {
			option_set(cfg, &options[i], i, equals + 1);
			return;
		}
	usage_error("%s has no option \"%.*s\"; `fscale-bench --list` shows the options",
		    cfg->workload->id, (int)(equals - text), text);
}

static void options_default(struct config *cfg)
{
	const struct option_desc *options = cfg->workload->options;

	for (unsigned int i = 0; options && options[i].name; i++) {
		if (options[i].choices)
			cfg->options[i].text = options[i].choices[0];
		else
			cfg->options[i].number = options[i].value;
	}
}

static void keep_set(struct config *cfg)
{
	const struct option_desc *options = cfg->workload->options;

	for (unsigned int i = 0; options && options[i].name; i++)
		if (!strcmp(options[i].name, KEEP))
			cfg->keep = (uint64_t)cfg->options[i].number;
}

static void check_dir(struct config *cfg, const char *dir)
{
	struct dirent *entry;
	DIR *stream;

	if (!dir)
		usage_error("--dir is missing: give an empty directory to run in");
	stream = opendir(dir);
	if (!stream)
		usage_error("cannot open the directory %s: %s; give --dir an existing, empty directory",
			    dir, strerror(errno));
	while ((errno = 0, entry = readdir(stream)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") &&
		    strcmp(entry->d_name, "lost+found"))
			usage_error("%s is not empty (it contains %s); give --dir an empty directory",
				    dir, entry->d_name);
	if (errno)
		usage_error("cannot read the directory %s: %s", dir, strerror(errno));
	closedir(stream);
	if (access(dir, W_OK | X_OK))
		usage_error("cannot write to %s: %s; give --dir a directory that you may write to",
			    dir, strerror(errno));
	cfg->dir = realpath(dir, NULL);
	if (!cfg->dir)
		usage_error("cannot resolve %s: %s", dir, strerror(errno));
}

static void check_cpus(struct config *cfg, const char *text)
{
	const struct workload *wl = cfg->workload;
	int count;

	if (!text)
		usage_error("--cpus is missing: give the CPUs to run on, such as 0-3");
	count = cpulist_parse(text, &cfg->cpus);
	if (count < 0)
		usage_error("--cpus takes a list of different CPUs such as 0,2-5; it was given \"%s\"", text);
	for (int i = 0; i < count; i++)
		if (!cpu_online(cfg->cpus[i]))
			usage_error("CPU %d is not online; /sys/devices/system/cpu/online lists those that are",
				    cfg->cpus[i]);
	cfg->ncpus = (unsigned int)count;
	if (cfg->ncpus < wl->min_cores)
		usage_error("%s needs at least %u CPUs (%s); --cpus names %u", wl->id, wl->min_cores,
			    wl->background_run ? "the last one runs the writer" : "its workers share a file or directory",
			    cfg->ncpus);
	cfg->workers = (cfg->ncpus - (wl->background_run ? 1 : 0)) * cfg->workers_per_cpu;
}

int config_cpu(const struct config *cfg, unsigned int id)
{
	if (id == cfg->workers)
		return cfg->cpus[cfg->ncpus - 1];
	/* In turn, so that each CPU has a worker before one has its second. */
	return cfg->cpus[id % (cfg->workers / cfg->workers_per_cpu)];
}

static void check_mode(const struct config *cfg)
{
	char modes[64] = "";

	if (cfg->workload->modes & IN_MODE(cfg->mode))
		return;
	for (unsigned int mode = 0; mode < MODES; mode++)
		if (cfg->workload->modes & IN_MODE(mode)) {
			strcat(modes, *modes ? ", " : "");
			strcat(modes, mode_names[mode]);
		}
	usage_error("%s has no mode %s; its modes: %s", cfg->workload->id, mode_names[cfg->mode], modes);
}

static void check_writable_dir(const char *option, const char *dir)
{
	struct stat st;

	if (stat(dir, &st) || !S_ISDIR(st.st_mode) || access(dir, W_OK | X_OK))
		usage_error("--%s takes a directory that you may write to; it was given \"%s\"", option, dir);
}

enum {
	OPT_LIST, OPT_WORKLOAD, OPT_DIR, OPT_CPUS, OPT_WORKERS_PER_CPU, OPT_MODE, OPT_DURATION,
	OPT_WARMUP, OPT_MIN_WINDOW, OPT_INTERVAL, OPT_SEED, OPT_OPTION, OPT_MAX_STOCK, OPT_SPACE,
	OPT_INODES, OPT_CGROUP, OPT_LATENCY, OPT_COUNTER, OPT_SYNC_FDS, OPT_SLICE, OPT_SETTLE, OPT_WINDOWS, OPT_WINDOW_OPS,
	OPT_WINDOW_NS, OPT_PRECISION, OPT_ROI,
	OPT_HELP,
};

static const struct option long_options[] = {
	{ "list", no_argument, NULL, OPT_LIST },
	{ "workload", required_argument, NULL, OPT_WORKLOAD },
	{ "dir", required_argument, NULL, OPT_DIR },
	{ "cpus", required_argument, NULL, OPT_CPUS },
	{ "workers-per-cpu", required_argument, NULL, OPT_WORKERS_PER_CPU },
	{ "mode", required_argument, NULL, OPT_MODE },
	{ "duration", required_argument, NULL, OPT_DURATION },
	{ "warmup", required_argument, NULL, OPT_WARMUP },
	{ "min-window", required_argument, NULL, OPT_MIN_WINDOW },
	{ "interval", required_argument, NULL, OPT_INTERVAL },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "option", required_argument, NULL, OPT_OPTION },
	{ "max-stock", required_argument, NULL, OPT_MAX_STOCK },
	{ "space", required_argument, NULL, OPT_SPACE },
	{ "inodes", required_argument, NULL, OPT_INODES },
	{ "cgroup", required_argument, NULL, OPT_CGROUP },
	{ "latency", required_argument, NULL, OPT_LATENCY },
	{ "counter", required_argument, NULL, OPT_COUNTER },
	{ "sync-fds", required_argument, NULL, OPT_SYNC_FDS },
	{ "slice", required_argument, NULL, OPT_SLICE },
	{ "settle", no_argument, NULL, OPT_SETTLE },
	{ "windows", required_argument, NULL, OPT_WINDOWS },
	{ "window-ops", required_argument, NULL, OPT_WINDOW_OPS },
	{ "window-ns", required_argument, NULL, OPT_WINDOW_NS },
	{ "precision", required_argument, NULL, OPT_PRECISION },
	{ "roi", required_argument, NULL, OPT_ROI },
	{ "help", no_argument, NULL, OPT_HELP },
	{ NULL, 0, NULL, 0 },
};

void config_parse(struct config *cfg, int argc, char **argv)
{
	const char *dir = NULL, *cpus = NULL;
	const char **options = calloc((size_t)argc, sizeof(char *));
	unsigned int noptions = 0;
	int option;

	if (!options)
		usage_error("out of memory");
	*cfg = (struct config){
		.duration = 5, .warmup = 0.2, .min_window = 0.02, .interval = 0.1, .seed = 1,
		.window_ops = 512, .window_ns = 200000, .max_stock = 1 << 20, .sync_read = -1, .sync_write = -1,
		.workers_per_cpu = 1,
	};
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		switch (option) {
		case OPT_LIST: cfg->list = true; break;
		case OPT_WORKLOAD: cfg->workload = workload_parse(optarg); break;
		case OPT_DIR: dir = optarg; break;
		case OPT_CPUS: cpus = optarg; break;
		case OPT_WORKERS_PER_CPU:
			cfg->workers_per_cpu = (unsigned int)number("workers-per-cpu", optarg, 1,
								    WORKERS_PER_CPU_MAX);
			break;
		case OPT_MODE: cfg->mode = mode_parse(optarg); break;
		case OPT_DURATION: cfg->duration = seconds("duration", optarg, false); break;
		case OPT_WARMUP: cfg->warmup = seconds("warmup", optarg, true); break;
		case OPT_MIN_WINDOW: cfg->min_window = seconds("min-window", optarg, true); break;
		case OPT_INTERVAL: cfg->interval = seconds("interval", optarg, false); break;
		case OPT_SEED: cfg->seed = number("seed", optarg, 0, INT64_MAX); break;
		case OPT_OPTION: options[noptions++] = optarg; break;
		case OPT_MAX_STOCK: cfg->max_stock = number("max-stock", optarg, 1, STOCK_MAX); break;
		case OPT_SPACE: cfg->space = number("space", optarg, 1, INT64_MAX); break;
		case OPT_INODES: cfg->inodes = number("inodes", optarg, 1, INT64_MAX); break;
		case OPT_CGROUP: cfg->cgroup = optarg; break;
		case OPT_LATENCY: cfg->latency = optarg; break;
		case OPT_COUNTER: counter_add(cfg, optarg); break;
		case OPT_SYNC_FDS: sync_fds_parse(cfg, optarg); break;
		case OPT_SLICE: cfg->slice = seconds("slice", optarg, false); break;
		case OPT_SETTLE: cfg->settle = true; break;
		case OPT_WINDOWS: cfg->windows = number("windows", optarg, 1, 10000); break;
		case OPT_WINDOW_OPS:
			cfg->window_ops = number("window-ops", optarg, 1, 10000000);
			break;
		case OPT_WINDOW_NS:
			cfg->window_ns = number("window-ns", optarg, 1, 1000000000);
			break;
		case OPT_PRECISION: cfg->precision = number("precision", optarg, 1, 1000); break;
		case OPT_ROI: roi_parse(cfg, optarg); break;
		case OPT_HELP: fputs(help, stdout); exit(EXIT_GOOD);
		default: usage_error("`fscale-bench --help` shows the options");
		}
	}
	if (optind < argc)
		usage_error("\"%s\" is not an option; `fscale-bench --help` shows the options", argv[optind]);
	if (cfg->list)
		goto out;
	if (!cfg->workload)
		usage_error("--workload is missing; `fscale-bench --list` shows all workloads");
	if (cfg->duration < cfg->min_window)
		usage_error("--duration %g s is shorter than --min-window %g s; give a longer --duration", cfg->duration,
			    cfg->min_window);
	if (cfg->slice && cfg->sync_read < 0)
		usage_error("--slice needs --sync-fds: the file descriptors for requests and answers");
	if (cfg->slice && cfg->slice < cfg->min_window)
		usage_error("--slice %g s is shorter than --min-window %g s; give a longer --slice",
			    cfg->slice, cfg->min_window);
	if (cfg->settle && !cfg->slice)
		usage_error("--settle needs --slice: it calls syncfs() after each slice");
	if (cfg->windows && (cfg->slice || cfg->latency))
		usage_error("--windows cannot be combined with --slice or --latency: no clock is read in them");
	if (cfg->precision && (!cfg->windows || cfg->windows > PRECISION_WINDOWS))
		usage_error("--precision needs --windows of at most %d", PRECISION_WINDOWS);
	if (cfg->workers_per_cpu > 1 && (cfg->windows || cfg->slice))
		usage_error("--workers-per-cpu %u cannot be combined with --slice or --windows, which are too short for the scheduler to run each worker",
			    cfg->workers_per_cpu);
	options_default(cfg);
	for (unsigned int i = 0; i < noptions; i++)
		option_parse(cfg, options[i]);
	if (cfg->rate && (cfg->windows || cfg->slice))
		usage_error("option rate cannot be combined with --slice or --windows, which end before an operation that waits can begin");
	keep_set(cfg);
	check_mode(cfg);
	check_cpus(cfg, cpus);
	if (cfg->cgroup)
		check_writable_dir("cgroup", cfg->cgroup);
	if (cfg->latency)
		check_writable_dir("latency", cfg->latency);
	check_dir(cfg, dir);
out:
	free(options);
}
