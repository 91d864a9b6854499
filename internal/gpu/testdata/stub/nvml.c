/* A stand-in for the NVIDIA driver's library, for tests.
 *
 * It is built as libnvidia-ml.so.1 and opened as the real one is. What it answers
 * stands in the file that WEIR_STUB_NVML names, one line for each figure:
 *
 *     gpus 2
 *     power 0 300000 310000 !15 ~200:305000
 *     power * 100000
 *
 * that is a figure, a GPU or * for all others, and the answers of its first, second,
 * third … reading, the last of which repeats. !N is error N of NVML, ~MS: waits that
 * long before the answer, @ never returns. A figure that has no line is not
 * supported. XIDs have the lines "xid GPU NUMBER AFTER_MS".
 *
 * -DOLD leaves out functions that old drivers lack, -DBARE all that are not needed to
 * start, -DBROKEN one that is.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int ret; /* nvmlReturn_t */
typedef struct gpu { int index; } *dev;
typedef unsigned long long u64;

enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3, TIMEOUT = 10, UNKNOWN = 999 };
enum { MOST_GPUS = 64, MOST_LINES = 512, MOST_ANSWERS = 32 };

static struct line {
	char figure[32];
	int gpu; /* -1: all others */
	int answers, asked[MOST_GPUS];
	char answer[MOST_ANSWERS][32];
} lines[MOST_LINES];
static int n_lines, started;
static struct gpu gpus[MOST_GPUS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void load(void) {
	const char *path = getenv("WEIR_STUB_NVML");
	FILE *f = path ? fopen(path, "r") : NULL;
	char text[4096];
	n_lines = 0;
	while (f && n_lines < MOST_LINES && fgets(text, sizeof text, f)) {
		struct line *l = &lines[n_lines];
		char *word = strtok(text, " \n");
		if (!word) continue;
		memset(l, 0, sizeof *l);
		snprintf(l->figure, sizeof l->figure, "%s", word);
		l->gpu = -1;
		if (strcmp(word, "gpus") && strcmp(word, "init")) {
			word = strtok(NULL, " \n");
			l->gpu = word && strcmp(word, "*") ? atoi(word) : -1;
		}
		while ((word = strtok(NULL, " \n")) && l->answers < MOST_ANSWERS)
			snprintf(l->answer[l->answers++], sizeof l->answer[0], "%s", word);
		n_lines++;
	}
	if (f) fclose(f);
	for (int i = 0; i < MOST_GPUS; i++) gpus[i].index = i;
}

static struct line *find(const char *figure, int gpu) {
	struct line *all = NULL;
	for (int i = 0; i < n_lines; i++) {
		if (strcmp(lines[i].figure, figure)) continue;
		if (lines[i].gpu == gpu) return &lines[i];
		if (lines[i].gpu == -1) all = &lines[i];
	}
	return all;
}

/* look reads the next answer as a text. */
static ret look(const char *figure, int gpu, char *into) {
	pthread_mutex_lock(&lock);
	struct line *l = find(figure, gpu);
	if (!l || !l->answers) {
		pthread_mutex_unlock(&lock);
		return NOT_SUPPORTED;
	}
	int *asked = &l->asked[gpu < 0 ? 0 : gpu];
	char answer[32];
	strcpy(answer, l->answer[*asked < l->answers ? *asked : l->answers - 1]);
	(*asked)++;
	pthread_mutex_unlock(&lock);
	char *rest = answer;
	if (*rest == '@') for (;;) pause();
	if (*rest == '~') {
		usleep(1000 * strtoul(rest + 1, &rest, 10));
		rest++; /* : */
	}
	if (*rest == '!') return atoi(rest + 1);
	strcpy(into, rest);
	return SUCCESS;
}

static ret number(const char *figure, dev d, u64 *into) {
	char answer[32];
	if (!started) return UNINITIALIZED;
	if (!d || d->index < 0 || d->index >= MOST_GPUS) return INVALID;
	ret r = look(figure, d->index, answer);
	if (r == SUCCESS) *into = strtoull(answer, NULL, 0);
	return r;
}

static ret small(const char *figure, dev d, unsigned *into) {
	u64 x = 0;
	ret r = number(figure, d, &x);
	if (r == SUCCESS) *into = (unsigned)x;
	return r;
}

static ret init(void) {
	char answer[32];
	pthread_mutex_lock(&lock);
	int fresh = started == 0;
	if (fresh) load();
	pthread_mutex_unlock(&lock);
	ret r = look("init", -1, answer);
	if (r != NOT_SUPPORTED && r != SUCCESS) return r;
	started++;
	return SUCCESS;
}

static ret count(unsigned *n) {
	char answer[32];
	if (!started) return UNINITIALIZED;
	ret r = look("gpus", -1, answer);
	if (r == SUCCESS) *n = (unsigned)atoi(answer);
	return r;
}

static ret handle(unsigned i, dev *d) {
	u64 opened = 0;
	if (!started) return UNINITIALIZED;
	if (i >= MOST_GPUS) return INVALID;
	ret r = number("handle", &gpus[i], &opened);
	if (r != SUCCESS && r != NOT_SUPPORTED) return r;
	*d = &gpus[i];
	return SUCCESS;
}

ret nvmlShutdown(void) {
	if (!started) return UNINITIALIZED;
	started--;
	return SUCCESS;
}

#ifndef BROKEN
#ifdef OLD
ret nvmlInit(void) { return init(); }
#else
ret nvmlInit_v2(void) { return init(); }
#endif
#endif

#ifdef OLD
ret nvmlDeviceGetCount(unsigned *n) { return count(n); }
ret nvmlDeviceGetHandleByIndex(unsigned i, dev *d) { return handle(i, d); }
#else
ret nvmlDeviceGetCount_v2(unsigned *n) { return count(n); }
ret nvmlDeviceGetHandleByIndex_v2(unsigned i, dev *d) { return handle(i, d); }
#endif

#ifndef BARE
ret nvmlDeviceGetName(dev d, char *name, unsigned size) {
	snprintf(name, size, "Stub GPU");
	return SUCCESS;
}

ret nvmlDeviceGetUUID(dev d, char *uuid, unsigned size) {
	snprintf(uuid, size, "GPU-%d", d->index);
	return SUCCESS;
}

ret nvmlDeviceGetUtilizationRates(dev d, unsigned *both) {
	ret r = small("util", d, &both[0]);
	if (r == SUCCESS && small("memutil", d, &both[1]) != SUCCESS) both[1] = 0;
	return r;
}

ret nvmlDeviceGetClockInfo(dev d, int kind, unsigned *mhz) { return kind == 1 ? small("clock", d, mhz) : INVALID; }
ret nvmlDeviceGetMaxClockInfo(dev d, int kind, unsigned *mhz) { return kind == 1 ? small("maxclock", d, mhz) : INVALID; }
ret nvmlDeviceGetPowerUsage(dev d, unsigned *mw) { return small("power", d, mw); }
ret nvmlDeviceGetEnforcedPowerLimit(dev d, unsigned *mw) { return small("limit", d, mw); }

ret nvmlDeviceGetMemoryInfo(dev d, u64 *info) { /* total, free, used */
	ret r = number("memtotal", d, &info[0]);
	if (r == SUCCESS) r = number("memused", d, &info[2]);
	info[1] = info[0] - info[2];
	return r;
}

ret nvmlDeviceGetPcieThroughput(dev d, int direction, unsigned *kb) { return small(direction ? "pcierx" : "pcietx", d, kb); }
ret nvmlDeviceGetTotalEccErrors(dev d, int kind, int counter, u64 *n) { return kind == 1 && counter == 0 ? number("ecc", d, n) : INVALID; }

#ifdef OLD
ret nvmlDeviceGetCurrentClocksThrottleReasons(dev d, u64 *mask) { return number("reasons", d, mask); }
ret nvmlDeviceGetTemperature(dev d, int sensor, unsigned *c) { return sensor == 0 ? small("temp", d, c) : INVALID; }
#else
ret nvmlDeviceGetCurrentClocksEventReasons(dev d, u64 *mask) { return number("reasons", d, mask); }
ret nvmlDeviceGetTotalEnergyConsumption(dev d, u64 *mj) { return number("energy", d, mj); }

struct temperature { unsigned version; int sensor, celsius; };
ret nvmlDeviceGetTemperatureV(dev d, struct temperature *t) {
	if (t->version != (sizeof *t | 1u << 24) || t->sensor != 0) return INVALID;
	return small("temp", d, (unsigned *)&t->celsius);
}

struct process { unsigned pid; u64 memory; unsigned gpu_instance, compute_instance; };
ret nvmlDeviceGetComputeRunningProcesses_v3(dev d, unsigned *n, struct process *list) {
	unsigned there = 0;
	ret r = small("processes", d, &there);
	if (r != SUCCESS) return r;
	if (*n < there) {
		*n = there;
		return 7; /* insufficient size */
	}
	for (unsigned i = 0; i < there; i++) {
		list[i].pid = 1000 + i;
		list[i].memory = i ? (u64)i << 30 : ~0ULL;
	}
	*n = there;
	return SUCCESS;
}

/* GPM: a sample is the number of its reading, a metric the mean between two. */
struct support { unsigned version, supported; };
ret nvmlGpmQueryDeviceSupport(dev d, struct support *s) {
	s->supported = 0;
	return s->version == 1 ? small("gpm", d, &s->supported) : INVALID;
}
struct gpm_sample { dev d; };
ret nvmlGpmSampleAlloc(struct gpm_sample **s) {
	*s = calloc(1, sizeof **s);
	return SUCCESS;
}
ret nvmlGpmSampleFree(struct gpm_sample *s) {
	free(s);
	return SUCCESS;
}
ret nvmlGpmSampleGet(dev d, struct gpm_sample *s) {
	s->d = d;
	return SUCCESS;
}
struct gpm_metric { unsigned id; ret r; double value; char *names[3]; };
struct gpm_get { unsigned version, n; struct gpm_sample *older, *newer; struct gpm_metric metrics[]; };
ret nvmlGpmMetricsGet(struct gpm_get *g) {
	if (g->version != 1 || g->older == g->newer || !g->older->d || g->older->d != g->newer->d) return INVALID;
	for (unsigned i = 0; i < g->n; i++) {
		char figure[32];
		u64 thousandths = 0;
		snprintf(figure, sizeof figure, "gpm%u", g->metrics[i].id);
		g->metrics[i].r = number(figure, g->newer->d, &thousandths);
		g->metrics[i].value = thousandths / 1000.0;
	}
	return SUCCESS;
}

/* Events: each XID comes once, so long after the set was made. */
struct event { dev d; u64 type, data; unsigned gpu_instance, compute_instance; };
struct set { unsigned waited, watched, told; };
ret nvmlEventSetCreate(struct set **s) {
	*s = calloc(1, sizeof **s);
	return SUCCESS;
}
ret nvmlEventSetFree(struct set *s) {
	free(s);
	return SUCCESS;
}
ret nvmlDeviceRegisterEvents(dev d, u64 types, struct set *s) {
	if (types != 8 || !find("xid", d->index)) return NOT_SUPPORTED;
	s->watched |= 1u << d->index;
	return SUCCESS;
}
ret nvmlEventSetWait_v2(struct set *s, struct event *e, unsigned ms) {
	for (unsigned end = s->waited + ms; s->waited < end; s->waited += 5) {
		for (int i = 0; i < n_lines; i++) {
			struct line *l = &lines[i];
			if (strcmp(l->figure, "xid") || l->answers < 2 || s->told & 1u << i) continue;
			if ((unsigned)atoi(l->answer[1]) > s->waited) continue;
			s->told |= 1u << i;
			if (l->answer[0][0] == '!') return atoi(l->answer[0] + 1);
			if (l->answer[0][0] == '@') for (;;) pause();
			*e = (struct event){&gpus[l->gpu], 8, strtoull(l->answer[0], NULL, 0), ~0u, ~0u};
			return SUCCESS;
		}
		usleep(5000);
	}
	return TIMEOUT;
}
#endif
#endif
