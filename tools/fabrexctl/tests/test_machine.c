// SPDX-License-Identifier: GPL-2.0-only
/*
 * Machines without a fabric, recorded as data: what list, p2p, topology and
 * doctor say of them, which is in the transcripts beside them; that nothing is
 * written for it and no privilege is used; that garbage does no harm.
 * FABREX_UPDATE=1 writes the transcripts anew.
 */
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../lib/tests/machine.h"
#include "ctl.h"
#include "fake.h"
#include "look.h"
#include "recorded.h"
#include "run_line.h"
#include "columns.h"
#include "json.h"

#define HERE "tools/fabrexctl/tests/machines/"

static const char *const names[] = {
	"laptop", "pex-server", "switchtec", "odd", "qemu-guest", "hostile",
	"container",
};

static const char *const lines[] = {
	"list", "list machine --wide", "list devices", "list devices --wide",
	"doctor", "p2p", "topology show live",
	"topology export live --format graph", "p2p 0000:01:00.0 0000:02:00.0",
};

static struct machine machine;

static struct fake *start(const char *name)
{
	struct fake *f = fake_new();

	recorded_load(&machine, look_line(HERE "%s.machine", name));
	setenv("FABREX_ROOT", machine.root, 1);
	f->no_module = 1;
	return f;
}

static void finish(struct fake *f)
{
	machine_free(&machine);
	fake_free(f);
}

/* ---- transcripts --------------------------------------------------------- */

/* The graph begins with the name of the machine that runs this. */
static const char *without_host(const char *text, const char *host)
{
	size_t n = strlen(host);

	return n && !strncmp(text, host, n) ? text + n : text;
}

/* The commands of a transcript with what they say now. To be freed. */
static char *say_again(struct fake *f, const char *transcript)
{
	char *copy = xstrdup(transcript), *line, *save, *text = NULL, host[65];
	size_t len;
	FILE *out = open_memstream(&text, &len);

	gethostname(host, sizeof(host));
	for (line = strtok_r(copy, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		struct run r;

		if (*line == '#')
			fprintf(out, "%s\n", line);
		if (strncmp(line, "$ fabrexctl", 11))
			continue;
		r = run_line(&f->b, line + 11 + (line[11] == ' '));
		fprintf(out, "%s\n%s%s", line, strstr(line, "topology show") ?
			without_host(r.out, host) : r.out, r.err);
		if (r.code)
			fprintf(out, "exit code %d\n", r.code);
		run_free(&r);
	}
	fclose(out);
	free(copy);
	return text;
}

static void show_difference(const char *want, const char *got)
{
	size_t i = 0, line = 0;

	while (want[i] && want[i] == got[i]) {
		i++;
		if (want[i - 1] == '\n')
			line = i;
	}
	printf("# expected: %.*s\n# got:      %.*s\n",
	       (int)strcspn(want + line, "\n"), want + line,
	       (int)strcspn(got + line, "\n"), got + line);
}

static void transcripts(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		const char *path = look_line(HERE "%s.says", names[i]);
		struct fake *f = start(names[i]);
		char *want = look_read(path), *got = NULL;
		bool same;

		ok(want, "%s can be read", path);
		got = say_again(f, want ? want : "");
		same = want && !strcmp(want, got);
		if (!same && getenv("FABREX_UPDATE"))
			look_write(path, got);
		if (want && !same)
			show_difference(want, got);
		ok(same && strstr(got, "$ fabrexctl p2p\n"),
		   "%s: all that it says", names[i]);
		free(want);
		free(got);
		finish(f);
	}
}

/* ---- JSON ---------------------------------------------------------------- */

static const char *const record_keys[] = {
	"pci_name", "kind", "kind_supposed", "model", "state", "link",
	"capability", "attainable", "slow", "numa_node", "driver", "acs", "acs_control",
	"iommu_group", "iommu_type", "slot", "physical_function",
	"virtual_functions", "pci_id", "subsystem_id", "pci_class", "parent",
	"host_bridge",
};

static void records(void)
{
	struct fake *f = start("pex-server");
	json_object *doc = look_json(&f->b, "list"), *row;
	const struct column *col;
	size_t i, n = 0, missing = 0;

	row = look_at(doc, "devices.0");
	for (i = 0; i < ARRAY_SIZE(record_keys); i++)
		missing += !json_object_object_get_ex(row, record_keys[i], NULL);
	for (col = function_columns; col->title; col++, n++)
		missing += !json_object_object_get_ex(row, col->key, NULL);
	ok(!missing && n == ARRAY_SIZE(record_keys) &&
	   json_object_object_length(row) == (int)n,
	   "a record has all keys, and each is a column");
	ok(look_at(doc, "no_fabric") && !look_at(doc, "fabric") &&
	   look_length(doc, "endpoints") == 0, "there is no fabric");
	n = (size_t)look_length(doc, "devices");
	json_object_put(doc);
	doc = look_json(&f->b, "list devices");
	ok(n > 30 && look_length(doc, "devices") == (long)n,
	   "table and tree have the same %zu records", n);
	json_object_put(doc);
	doc = look_json(&f->b, "list devices --kind gpu");
	ok(look_length(doc, "devices") == 4, "four GPUs");
	ok(!strcmp(look_text(doc, "devices.0.parent"), "0000:18:00.0"),
	   "the first is below its port");
	json_object_put(doc);
	look_refused(&f->b, "list devices --kind gpuu", EXIT_USAGE,
		     "upstream-port");
	look_refused(&f->b, "list machine --kind gpu", EXIT_USAGE,
		     "does not apply to machine");
	look_refused(&f->b, "doctor x", EXIT_USAGE, "too much");
	doc = look_json(&f->b, "doctor");
	ok(look_length(doc, "findings") > 10 && look_length(doc, "abilities") > 3 &&
	   look_length(doc, "next") > 0 &&
	   !strcmp(look_text(doc, "kernel"), "6.8.0-51-generic"),
	   "doctor has its own");
	json_object_put(doc);
	finish(f);
}

/* With a fabric, the tree is the fabric's; the machine's is there when asked. */
static void beside_a_fabric(void)
{
	struct fake *f = fabric_small();
	json_object *doc;
	struct run r;

	recorded_load(&machine, HERE "switchtec.machine");
	setenv("FABREX_ROOT", machine.root, 1);
	r = run_line(&f->b, "");
	has(r.out, "fabric test, seen through a.0");
	run_free(&r);
	doc = look_json(&f->b, "list");
	ok(!look_at(doc, "no_fabric") && !look_at(doc, "devices") &&
	   json_object_object_get_ex(doc, "devices", NULL),
	   "keys of the machine are null");
	json_object_put(doc);
	r = run_line(&f->b, "list machine");
	has(r.out, "this machine: 1 switch, 3 GPUs");
	hasnt(r.out, "no fabric");
	run_free(&r);
	r = run_line(&f->b, "doctor");
	has(r.out, "compose: yes: through the fabric port a.0, as root");
	run_free(&r);
	finish(f);
}

/* ---- the planner's graph ------------------------------------------------- */

static void graph(void)
{
	struct fake *f = start("pex-server");
	json_object *doc = look_json(&f->b, "topology show live");
	struct run r;

	ok(look_length(doc, "ranks") == 4, "four GPUs are four ranks");
	json_object_put(doc);
	r = run_line(&f->b, "topology export live --format nccl");
	ok(!r.code, "and are written for NCCL: %s", r.err);
	has(r.out, "busid=\"0000:19:00.0\"");
	has(r.out, "busid=\"0000:17:00.0\"");
	has(r.out, "numaid=\"1\"");
	has(r.err, "0000:19:00.0 has a link of 8 lanes, though both ends have 16");
	run_free(&r);
	r = run_line(&f->b, "topology export live --format topo");
	ok(r.code == EXIT_NO_DEVICE, "there is no wiring: %d", r.code);
	has(r.err, "--format graph, nccl or rccl");
	run_free(&r);
	r = run_line(&f->b, "plan-collective live --no-prediction");
	ok(!r.code, "it can be planned for: %s", r.err);
	run_free(&r);
	look_refused(&f->b, "topology show live --host a", EXIT_NOT_FOUND,
		     "there is only this machine");
	finish(f);
}

/* ---- nothing is written -------------------------------------------------- */

#define LOAD(what)	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, \
				 offsetof(struct seccomp_data, what))
#define KILL		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
#define REFUSE(nr)	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), KILL

/* Kills the process that opens a file for writing, or changes one's name. */
static void allow_looking_only(void)
{
	struct sock_filter filter[] = {
		LOAD(nr),
		REFUSE(__NR_unlinkat), REFUSE(__NR_renameat2),
		REFUSE(__NR_mkdirat), REFUSE(__NR_linkat),
		REFUSE(__NR_symlinkat), REFUSE(__NR_fchmodat),
		REFUSE(__NR_truncate), REFUSE(__NR_ftruncate),
		REFUSE(__NR_init_module), REFUSE(__NR_finit_module),
		REFUSE(__NR_mount), REFUSE(__NR_ioctl),
#ifdef __NR_open
		REFUSE(__NR_open), REFUSE(__NR_unlink), REFUSE(__NR_rename),
		REFUSE(__NR_mkdir), REFUSE(__NR_creat), REFUSE(__NR_link),
		REFUSE(__NR_symlink), REFUSE(__NR_chmod),
#endif
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_openat, 0, 4),
		LOAD(args[2]),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K,
			 O_WRONLY | O_RDWR | O_CREAT | O_TRUNC),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
		KILL,
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { ARRAY_SIZE(filter), filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(99);
}

static void drop_privileges(void)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct none[2] = { { 0, 0, 0 }, { 0, 0, 0 } };

	if (syscall(SYS_capset, &head, none))
		_exit(98);
}

/* In a process of its own. Return: its status, and what it printed in @text. */
static int run_confined(struct fake *f, const char *line, char **text)
{
	int fd[2], status = -1;
	size_t len = 0;
	struct run r;
	pid_t pid;
	char buf[4096];
	ssize_t n;
	FILE *m;

	fflush(stdout);
	if (pipe(fd))
		return -1;
	pid = fork();
	if (!pid) {
		close(fd[0]);
		drop_privileges();
		allow_looking_only();
		r = run_line(&f->b, line);
		for (len = strlen(r.out); len; len -= (size_t)n, r.out += n) {
			n = write(fd[1], r.out, len);
			if (n <= 0)
				break;
		}
		_exit(r.code);
	}
	close(fd[1]);
	m = open_memstream(text, &len);
	while ((n = read(fd[0], buf, sizeof(buf))) > 0)
		fwrite(buf, 1, (size_t)n, m);
	fclose(m);
	close(fd[0]);
	waitpid(pid, &status, 0);
	return status;
}

static void nothing_is_written(void)
{
	size_t i, k;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		struct fake *f = start(names[i]);
		char *before = recorded_print(machine.root), *after, *text;
		size_t bad = 0;

		for (k = 0; k < ARRAY_SIZE(lines); k++) {
			struct run r = run_line(&f->b, lines[k]);
			int status = run_confined(f, lines[k], &text);

			if (!WIFEXITED(status) || WEXITSTATUS(status) != r.code ||
			    strcmp(text, r.out)) {
				printf("# %s: status %x, code %d\n", lines[k],
				       status, r.code);
				bad++;
			}
			free(text);
			run_free(&r);
		}
		after = recorded_print(machine.root);
		ok(!bad, "%s: %zu commands say the same without any privilege, and open nothing for writing",
		   names[i], ARRAY_SIZE(lines));
		ok(!strcmp(before, after), "%s: all files are as they were",
		   names[i]);
		free(before);
		free(after);
		finish(f);
	}
}

/* Registers that nobody reads may say what they like. */
static void sleeps_on(void)
{
	struct fake *f = start("laptop");
	struct run r;

	machine_config(&machine, "0000:01:00.0", 0xff, 64);
	r = run_line(&f->b, "list");
	has(r.out, "nvidia  asleep");
	hasnt(r.out, "does not answer");
	run_free(&r);
	machine_text(&machine, machine_at(&machine, "0000:00:01.0",
					  "power_state"), "D0\n");
	r = run_line(&f->b, "list");
	has(r.out, "nvidia  asleep");
	hasnt(r.out, "does not answer");
	run_free(&r);
	machine_text(&machine, machine_at(&machine, "0000:01:00.0",
					  "power_state"), "D0\n");
	r = run_line(&f->b, "list");
	has(r.out, "nvidia  does not answer");
	run_free(&r);
	finish(f);
}

/* A directory that this user may not read, as in some containers. */
static void not_allowed(void)
{
	struct fake *f = start("laptop");
	char *text;
	int status;

	ok(!chmod(look_line("%s/sys/bus/pci/devices", machine.root), 0),
	   "nobody may look");
	status = run_confined(f, "list", &text);
	ok(WIFEXITED(status) && !WEXITSTATUS(status), "that is no error: %x",
	   status);
	has(text, "/sys/bus/pci/devices cannot be read (Permission denied)");
	free(text);
	status = run_confined(f, "doctor", &text);
	ok(WIFEXITED(status) && !WEXITSTATUS(status), "nor to the doctor: %x",
	   status);
	has(text, "compose: unknown: no PCI device can be seen here");
	hasnt(text, "there is no PCIe switch");
	free(text);
	chmod(look_line("%s/sys/bus/pci/devices", machine.root), 0755);
	finish(f);
}

/* The filter does see what it shall: opening a file for writing is the end. */
static void writing_is_noticed(void)
{
	int status = -1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		allow_looking_only();
		_exit(open("/dev/null", O_WRONLY | O_CLOEXEC) >= 0);
	}
	waitpid(pid, &status, 0);
	ok(WIFSIGNALED(status), "who writes is killed");
}

/* ---- the kernel's configuration ------------------------------------------ */

static void packed_configuration(void)
{
	struct fake *f = start("odd");
	struct run r;

	machine_text(&machine, "proc/config.gz",
		     "CONFIG_PCI=y\nCONFIG_HOTPLUG_PCI_PCIE=y\n");
	r = run_line(&f->b, "doctor");
	has(r.out, "its configuration cannot be read, neither in /proc/config.gz");
	run_free(&r);
	ok(!system(look_line("cd %s/proc && mv config.gz config && gzip config",
			     machine.root)), "packed");
	r = run_line(&f->b, "doctor");
	has(r.out, "its configuration is in /proc/config.gz");
	has(r.out, "it has CONFIG_HOTPLUG_PCI_PCIE");
	has(r.out, "it was built without CONFIG_PCI_P2PDMA");
	run_free(&r);
	finish(f);
}

/* What is loaded, and is no friend of the device: said, with what to read. */
static void refused_by_a_driver(void)
{
	struct fake *f = start("odd");
	struct run r;

	machine_text(&machine, "sys/module/fabrex_draco/initstate", "live\n");
	machine_device(&machine, "pci0000:80", "0000:80:09.0", 0x1234da00, 0);
	machine_text(&machine, machine_at(&machine, "0000:80:09.0", "vendor"),
		     "0x1234\n");
	machine_text(&machine, machine_at(&machine, "0000:80:09.0", "device"),
		     "0xda00\n");
	r = run_line(&f->b, "doctor");
	has(r.out, "fabrex_draco is loaded, but does not drive 0000:80:09.0");
	has(r.out, "compose: no: there is a fabric port, but no driver for it");
	run_free(&r);
	machine_remove(&machine, "sys/module/fabrex_draco");
	machine_text(&machine, "lib/modules/6.1.0-30-amd64/modules.dep",
		     "updates/dkms/fabrex_draco.ko.xz: updates/dkms/fabrex.ko.xz\n");
	machine_text(&machine, "proc/sys/kernel/modules_disabled", "1\n");
	r = run_line(&f->b, "doctor");
	has(r.out, "installed for this kernel, but not loaded; the fabric port here needs it\n             next: sudo modprobe fabrex_draco");
	has(r.out, "this kernel loads no more modules");
	run_free(&r);
	finish(f);
}

/* ---- garbage ------------------------------------------------------------- */

static bool is_clean(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' && *text != '\n')
			return false;
	return true;
}

static void spoil(const char *path, unsigned int *seed)
{
	unsigned char junk[600];
	size_t i, n = (size_t)(rand_r(seed) % (int)sizeof(junk));
	int fd = open(path, O_WRONLY | (rand_r(seed) % 2 ? O_TRUNC : 0) |
		      O_CLOEXEC);

	for (i = 0; i < n; i++)
		junk[i] = (unsigned char)rand_r(seed);
	if (fd < 0 || pwrite(fd, junk, n, rand_r(seed) % 300) != (ssize_t)n)
		printf("# could not spoil %s\n", path);
	close(fd);
}

/* Every command ends as it should, whatever is in files and links. */
static void garbage(void)
{
	static const char *const machines[] = { "laptop", "switchtec", "odd" };
	const char *word = getenv("FABREX_FUZZ_SEED");
	unsigned int seed = word ? (unsigned int)atoi(word) : 1, round;
	size_t i, k, bad = 0, runs = 0;

	for (round = 0; round < 60; round++) {
		struct fake *f = start(machines[round % 3]);
		size_t n;
		char **files = recorded_files(machine.root, &n);

		for (i = 0; i < 1 + round / 4; i++)
			spoil(files[(size_t)rand_r(&seed) % n], &seed);
		for (k = 0; k < ARRAY_SIZE(lines); k++, runs++) {
			struct run r = run_line(&f->b, lines[k]);

			if ((r.code && r.code != EXIT_NO_P2P &&
			     r.code != EXIT_FAILED) || !is_clean(r.out) ||
			    !is_clean(r.err)) {
				printf("# round %u, %s: %d %s\n", round,
				       lines[k], r.code, r.err);
				bad++;
			}
			run_free(&r);
		}
		while (n)
			free(files[--n]);
		free(files);
		finish(f);
	}
	ok(!bad, "%zu runs on spoilt machines", runs);
}

/* ---- the recorder -------------------------------------------------------- */

static void recorder(void)
{
	static const char *const machines[] = { "laptop", "pex-server",
						"switchtec", "odd",
						"qemu-guest" };
	size_t i, k, bad;

	for (i = 0; i < ARRAY_SIZE(machines); i++) {
		struct fake *f = start(machines[i]);
		char *said[ARRAY_SIZE(lines)];
		const char *copy = look_path("copy.machine");

		ok(!system(look_line("tools/fabrexctl/tests/record-machine %s > %s",
				     machine.root, copy)), "%s is recorded",
		   machines[i]);
		for (k = 0; k < ARRAY_SIZE(lines); k++) {
			struct run r = run_line(&f->b, lines[k]);

			said[k] = xstrdup(r.out);
			run_free(&r);
		}
		machine_free(&machine);
		recorded_load(&machine, copy);
		setenv("FABREX_ROOT", machine.root, 1);
		for (k = 0, bad = 0; k < ARRAY_SIZE(lines); k++) {
			struct run r = run_line(&f->b, lines[k]);

			if (strcmp(r.out, said[k])) {
				show_difference(said[k], r.out);
				bad++;
			}
			free(said[k]);
			run_free(&r);
		}
		ok(!bad, "%s: the recording says the same", machines[i]);
		finish(f);
	}
}

int main(void)
{
	transcripts();
	records();
	beside_a_fabric();
	graph();
	nothing_is_written();
	sleeps_on();
	not_allowed();
	writing_is_noticed();
	packed_configuration();
	refused_by_a_driver();
	garbage();
	recorder();
	look_clean();
	return tap_done();
}
