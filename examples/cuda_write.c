// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * cuda_write: memory of a GPU here is written into memory of a GPU at a peer,
 * with the CUDA driver API. On b: cuda_write; on a: cuda_write b
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cuda.h>
#include <fabrex/fabrex.h>

#define SERVICE		4002
#define REGION		(1u << 20)
#define PATIENCE_MS	30000

/* What the two tell each other when they meet. */
struct card {
	struct fabrex_remote region;
	uint64_t key;		/* of the queue */
};

static int failed(const char *what)
{
	fprintf(stderr, "cuda_write: %s: %s\n", what, fabrex_strerror_last());
	return 1;
}

static int cuda_failed(const char *what, CUresult error)
{
	const char *text = "unknown error";

	cuGetErrorString(error, &text);
	fprintf(stderr, "cuda_write: %s: %s\n", what, text);
	return 1;
}

/* The first device, its context current. */
static int start_cuda(void)
{
	CUcontext context;
	CUdevice device;
	CUresult error = cuInit(0);

	if (!error)
		error = cuDeviceGet(&device, 0);
	if (!error)
		error = cuDevicePrimaryCtxRetain(&context, device);
	if (!error)
		error = cuCtxSetCurrent(context);
	return error ? cuda_failed("starting CUDA", error) : 0;
}

static unsigned char pattern(size_t i)
{
	return (unsigned char)(i * 31 + i / 4096);
}

/* The same call as for host memory: it finds out. */
static int make_region(struct fabrex_port *port, uint32_t access,
		       CUdeviceptr *device, struct fabrex_mr **mr)
{
	struct fabrex_memory memory;
	CUresult error = cuMemAlloc(device, REGION);
	void *addr;

	if (error)
		return cuda_failed("cuMemAlloc", error);
	addr = (void *)(uintptr_t)*device;
	if (fabrex_mr_register(port, addr, REGION, access, mr) ||
	    fabrex_memory_query(addr, &memory, sizeof(memory)))
		return failed("registering device memory");
	printf("%u bytes on CUDA device %d, %s\n", REGION, memory.device,
	       memory.pci);
	return 0;
}

/* Copies back what has arrived on the device, and looks at it. */
static int check(CUdeviceptr device)
{
	unsigned char *copy = malloc(REGION);
	CUresult error;
	size_t i;

	if (!copy)
		return failed("no memory");
	error = cuMemcpyDtoH(copy, device, REGION);
	if (error)
		return cuda_failed("cuMemcpyDtoH", error);
	for (i = 0; i < REGION && copy[i] == pattern(i); i++)
		;
	free(copy);
	printf("%zu of %u bytes are as they were sent\n", i, REGION);
	return i != REGION;
}

static int receive(struct fabrex_port *port)
{
	struct fabrex_queue_attr attr = {
		.rq_entries = 8, .flags = FABREX_QUEUE_EVENTFD,
	};
	struct fabrex_listener *listener;
	struct fabrex_queue *queue;
	struct card mine = { 0 };
	struct fabrex_mr *mr;
	struct fabrex_wc wc;
	uint32_t peer;
	CUdeviceptr device;

	if (make_region(port, FABREX_MR_REMOTE_WRITE, &device, &mr))
		return 1;
	if (fabrex_queue_create(port, &attr, sizeof(attr), &queue) ||
	    fabrex_listen(port, SERVICE, &listener))
		return failed("setting up");
	fabrex_mr_remote(mr, &mine.region);
	mine.key = fabrex_queue_key(queue);
	if (fabrex_accept(listener, &mine, sizeof(mine), NULL, NULL, &peer,
			  PATIENCE_MS))
		return failed("waiting for the other side");
	/* The immediate comes after the bytes. */
	if (fabrex_wait(queue, PATIENCE_MS) <= 0 ||
	    fabrex_poll(queue, &wc, 1) != 1)
		return failed("waiting for the message");
	fabrex_listener_close(listener);
	return check(device);
}

static int fill(CUdeviceptr device)
{
	unsigned char *source = malloc(REGION);
	CUresult error;
	size_t i;

	if (!source)
		return failed("no memory");
	for (i = 0; i < REGION; i++)
		source[i] = pattern(i);
	error = cuMemcpyHtoD(device, source, REGION);
	free(source);
	return error ? cuda_failed("cuMemcpyHtoD", error) : 0;
}

static int send_to(struct fabrex_port *port, const char *name)
{
	struct fabrex_op op = { .opcode = FABREX_OP_WRITE_IMM };
	struct fabrex_queue *queue;
	struct fabrex_peer peer;
	struct card theirs;
	size_t length = sizeof(theirs);
	struct fabrex_mr *mr;
	struct fabrex_wc wc;
	CUdeviceptr device;
	int n;

	if (make_region(port, 0, &device, &mr) || fill(device))
		return 1;
	if (fabrex_peer_find(port, name, &peer) ||
	    fabrex_queue_create(port, NULL, 0, &queue) ||
	    fabrex_connect(port, peer.peer, SERVICE, NULL, 0, &theirs,
			   &length, PATIENCE_MS))
		return failed("meeting the other side");
	op.length = REGION;
	op.peer = (uint16_t)peer.peer;
	op.mr = mr;
	op.rkey = theirs.region.rkey;
	op.dest_key = theirs.key;
	if (fabrex_post(queue, &op, 1) != 1)
		return failed("posting");
	while (!(n = fabrex_poll(queue, &wc, 1)))
		;
	if (n < 0)
		return failed("polling");
	printf("%u bytes to %s: %s\n", REGION, peer.name,
	       fabrex_wc_str(wc.status));
	return wc.status != FABREX_WC_OK;
}

int main(int argc, char **argv)
{
	struct fabrex_port *port;
	int ret;

	if (argc > 2 || (argc == 2 && argv[1][0] == '-')) {
		fprintf(stderr, "usage: cuda_write [PEER]\n");
		return 1;
	}
	if (start_cuda())
		return 1;
	if (fabrex_open(NULL, &port))
		return failed("opening the port");
	ret = argc == 2 ? send_to(port, argv[1]) : receive(port);
	fabrex_close(port);
	return ret;
}
