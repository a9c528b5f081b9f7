// SPDX-License-Identifier: GPL-2.0-only
#include "overlay.h"

#include <errno.h>
#include <sys/mman.h>

#include "files.h"

static PER_WORKER struct overlay_state private_state = { .lock = PTHREAD_MUTEX_INITIALIZER };
static struct overlay_state *shared_state;

static enum outcome make_directories(struct worker *w, const struct overlay *o)
{
	static const char *const within[] = { "", "/lower", "/upper", "/work", "/merged" };
	char path[32];

	for (unsigned int i = 0; i < sizeof(within) / sizeof(*within); i++) {
		snprintf(path, sizeof(path), "%s%s", o->place, within[i]);
		if (dir_make(w, path))
			return OP_FAILED;
	}
	return OP_OK;
}

enum outcome overlay_init(struct worker *w, struct overlay *o)
{
	if (w->workload->sharing == SHARING_LOW) {
		*o = (struct overlay){ .state = &private_state, .users = 1 };
		snprintf(o->place, sizeof(o->place), "%u", w->id);
		return namespace_enter(w) ? OP_FAILED : make_directories(w, o);
	}
	*o = (struct overlay){ .state = shared_state, .users = w->workers, .place = "share" };
	snprintf(o->prefix, sizeof(o->prefix), "%u.", w->id);
	return namespace_join(w) ? OP_FAILED : make_directories(w, o);
}

const char *overlay_inherit(const char *dir)
{
	pthread_mutexattr_t between_processes;
	int rc;

	shared_state = mmap(NULL, sizeof(*shared_state), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared_state == MAP_FAILED)
		return "mmap";
	rc = pthread_mutexattr_init(&between_processes);
	if (!rc)
		rc = pthread_mutexattr_setpshared(&between_processes, PTHREAD_PROCESS_SHARED);
	if (!rc)
		rc = pthread_mutex_init(&shared_state->lock, &between_processes);
	if (!rc)
		return namespace_inherit(dir);
	errno = rc;
	return "pthread_mutex_init";
}

void overlay_name(const struct overlay *o, struct name *name, const char *layer)
{
	char prefix[48];

	snprintf(prefix, sizeof(prefix), "%s/%s/%s", o->place, layer, o->prefix);
	name_init(name, prefix, "");
}

enum outcome overlay_unmount(struct worker *w, struct overlay *o)
{
	enum outcome outcome = OP_OK;
	char path[32];

	snprintf(path, sizeof(path), "%s/merged", o->place);
	pthread_mutex_lock(&o->state->lock);
	if (o->state->mounted)
		outcome = unmount(w, path);
	o->state->mounted = false;
	pthread_mutex_unlock(&o->state->lock);
	return outcome;
}

static enum outcome mount_layers(struct worker *w, const struct overlay *o)
{
	char path[32], options[160];

	snprintf(path, sizeof(path), "%s/merged", o->place);
	snprintf(options, sizeof(options),
		 "lowerdir=%s/lower,upperdir=%s/upper,workdir=%s/work,index=off,metacopy=off",
		 o->place, o->place, o->place);
	if (!mount("overlay", path, "overlay", 0, options))
		return OP_OK;
	return kernel_refuses() || errno == EINVAL ? worker_unsupported(w, "mount(overlay)", path) :
						      worker_fail(w, "mount(overlay)", path);
}

enum outcome overlay_mount(struct worker *w, struct overlay *o)
{
	struct overlay_state *state = o->state;
	enum outcome outcome = OP_OK;

	pthread_mutex_lock(&state->lock);
	if (++state->ready == o->users) {
		outcome = mount_layers(w, o);
		state->mounted = outcome == OP_OK;
		state->ready = 0;
	}
	pthread_mutex_unlock(&state->lock);
	return outcome;
}
