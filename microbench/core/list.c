// SPDX-License-Identifier: GPL-2.0-only
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "output.h"

static const char *const types[] = { [TYPE_DATA] = "data", [TYPE_METADATA] = "metadata" };
static const char *const actions[] = { [ACTION_READ] = "read", [ACTION_WRITE] = "write" };
static const char *const sharings[] = {
	[SHARING_LOW] = "low", [SHARING_MEDIUM] = "medium", [SHARING_HIGH] = "high",
};

/* A bound of an option; one with choices has none. */
static json_t *number(const struct option_desc *desc, long long bound)
{
	return desc->choices ? json_null() : json_integer(bound);
}

static json_t *option(const struct option_desc *desc)
{
	json_t *choices = json_array();
	json_t *value = desc->choices ? json_string(desc->choices[0]) : json_integer(desc->value);

	for (const char *const *choice = desc->choices; choice && *choice; choice++)
		json_array_append_new(choices, json_string(*choice));
	return json_pack("{s:s, s:o, s:s, s:o, s:o, s:o, s:o}", "name", desc->name, "default", value,
			 "help", desc->help, "choices", choices, "least", number(desc, desc->min),
			 "most", number(desc, desc->max), "multiple_of",
			 desc->multiple_of ? json_integer(desc->multiple_of) : json_null());
}

static json_t *descriptor(const struct workload *wl)
{
	json_t *modes = json_array(), *options = json_array();

	for (unsigned int mode = 0; mode < MODES; mode++)
		if (wl->modes & IN_MODE(mode))
			json_array_append_new(modes, json_string(mode_names[mode]));
	for (const struct option_desc *desc = wl->options; desc && desc->name; desc++)
		json_array_append_new(options, option(desc));
	for (unsigned int i = 0; i < COMMON_OPTIONS; i++)
		json_array_append_new(options, option(&common_options[i]));
	return json_pack("{s:s, s:s, s:s, s:s?, s:s, s:s, s:s, s:s, s:s, s:b, s:b, s:b, s:b, s:b, s:b, s:s?, s:i, s:o, s:o}",
			 "id", wl->id, "title", wl->title, "operation", wl->operation, "paper",
			 wl->paper, "type", types[wl->type], "action", actions[wl->action], "sharing",
			 sharings[wl->sharing], "contention", wl->contention, "setup", wl->setup_text,
			 "consumes", wl->stock != NULL, "background", wl->background_run != NULL,
			 "puts_off", wl->defers_work, "defers_frees", wl->defers_frees,
			 "apart", wl->named_only, "control", wl->control, "mounts", wl->mounts,
			 "min_cores", (int)wl->min_cores, "modes", modes, "options", options);
}

bool output_list(void)
{
	unsigned int count;
	const struct workload *const *all = workload_all(&count);
	json_t *list = json_array();
	bool good;

	for (unsigned int i = 0; i < count; i++)
		if (json_array_append_new(list, descriptor(all[i]))) {
			fprintf(stderr, "fscale-bench: the descriptor of %s lacks a title, operation, contention or set-up text\n", all[i]->id);
			exit(EXIT_FAILED);
		}
	good = !json_dumpf(list, stdout, JSON_INDENT(2)) && putchar('\n') != EOF && !fflush(stdout);
	json_decref(list);
	return good;
}
