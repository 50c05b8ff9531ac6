// SPDX-License-Identifier: GPL-2.0-only
/*
 * fabrex-perf-gloo: gloo over its TCP transport, the only one that it has for
 * processes of one machine, for fabrex-perf compare. C++, as gloo is.
 */
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <memory>
#include <vector>

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/config.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include "peer.h"

namespace {

/* Where ranks find each other; made before they are forked. */
char meeting[] = "/tmp/fabrex-perf-gloo-XXXXXX";

struct library {
	std::shared_ptr<gloo::rendezvous::Context> context;
	std::unique_ptr<gloo::ReduceScatterHalvingDoubling<float>> scatter;
	float *scatter_of;	/* and of how many elements: */
	size_t scatter_count;
	uint32_t tag;
};

struct library *of(struct peer_rank *r)
{
	return static_cast<struct library *>(r->library);
}

/* ---- operations -------------------------------------------------------- */

template <typename Options> Options make(struct peer_rank *r)
{
	Options options(of(r)->context);

	options.setTag(of(r)->tag++);
	return options;
}

int all_reduce(struct peer_rank *r)
{
	auto o = make<gloo::AllreduceOptions>(r);

	o.setInput(r->send, r->count);
	o.setOutput(r->recv, r->count);
	o.setReduceFunction(static_cast<void (*)(void *, const void *,
						 const void *, size_t)>(
		&gloo::sum<float>));
	gloo::allreduce(o);
	return 0;
}

int all_gather(struct peer_rank *r)
{
	auto o = make<gloo::AllgatherOptions>(r);

	o.setInput(r->send, r->count);
	o.setOutput(r->recv, r->count * r->ranks);
	gloo::allgather(o);
	return 0;
}

/* In place: gloo has no other. It is set up for a buffer once. */
int prepare_reduce_scatter(struct peer_rank *r)
{
	struct library *l = of(r);

	if (l->scatter && l->scatter_of == r->send &&
	    l->scatter_count == r->count)
		return 0;
	l->scatter.reset();
	l->scatter.reset(new gloo::ReduceScatterHalvingDoubling<float>(
		l->context, std::vector<float *>{ r->send },
		static_cast<int>(r->count * r->ranks),
		std::vector<int>(r->ranks, static_cast<int>(r->count))));
	l->scatter_of = r->send;
	l->scatter_count = r->count;
	return 0;
}

int reduce_scatter(struct peer_rank *r)
{
	of(r)->scatter->run();
	return 0;
}

int broadcast(struct peer_rank *r)
{
	auto o = make<gloo::BroadcastOptions>(r);

	o.setOutput(r->send, r->count);
	o.setRoot(0);
	gloo::broadcast(o);
	return 0;
}

int reduce(struct peer_rank *r)
{
	auto o = make<gloo::ReduceOptions>(r);

	o.setInput(r->send, r->count);
	o.setOutput(r->recv, r->count);
	o.setRoot(0);
	o.setReduceFunction(static_cast<void (*)(void *, const void *,
						 const void *, size_t)>(
		&gloo::sum<float>));
	gloo::reduce(o);
	return 0;
}

int all_to_all(struct peer_rank *r)
{
	auto o = make<gloo::AlltoallOptions>(r);

	o.setInput(r->send, r->count * r->ranks);
	o.setOutput(r->recv, r->count * r->ranks);
	gloo::alltoall(o);
	return 0;
}

int barrier(struct peer_rank *r)
{
	auto o = make<gloo::BarrierOptions>(r);

	gloo::barrier(o);
	return 0;
}

/* gloo throws where others return errors. */
template <int (*run)(struct peer_rank *r)> int caught(struct peer_rank *r)
{
	try {
		return run(r);
	} catch (const std::exception &e) {
		std::fprintf(stderr, "fabrex-perf-gloo: %s\n", e.what());
		return EIO;
	}
}

const struct peer_operation operations[] = {
	{ "all_reduce", false, caught<all_reduce>, nullptr },
	{ "all_gather", true, caught<all_gather>, nullptr },
	{ "reduce_scatter", true, caught<reduce_scatter>,
	  caught<prepare_reduce_scatter> },
	{ "broadcast", false, caught<broadcast>, nullptr },
	{ "reduce", false, caught<reduce>, nullptr },
	{ "all_to_all", true, caught<all_to_all>, nullptr },
	{ "barrier", false, caught<barrier>, nullptr },
};

/* ---- start ------------------------------------------------------------- */

/* No memory is shared; but this is called before ranks are forked. */
size_t make_meeting(uint32_t)
{
	if (!mkdtemp(meeting))
		std::perror("fabrex-perf-gloo: /tmp");
	return 1;
}

int meet(struct peer_rank *r)
{
	gloo::transport::tcp::attr attr;
	gloo::rendezvous::FileStore store(meeting);
	struct library *l = of(r);

	attr.hostname = "127.0.0.1";
	auto device = gloo::transport::tcp::CreateDevice(attr);
	l->context = std::make_shared<gloo::rendezvous::Context>(
		static_cast<int>(r->rank), static_cast<int>(r->ranks));
	l->context->connectFullMesh(store, device);
	barrier(r);
	if (!r->rank)
		std::filesystem::remove_all(meeting);
	return 0;
}

int open(struct peer_rank *r, void *)
{
	r->library = new library();
	return caught<meet>(r);
}

void close(struct peer_rank *r)
{
	delete of(r);
}

const char *version()
{
	static char text[64];

	std::snprintf(text, sizeof(text), "gloo %d.%d.%d over TCP",
		      GLOO_VERSION_MAJOR, GLOO_VERSION_MINOR,
		      GLOO_VERSION_PATCH);
	return text;
}

} // namespace

int main(int argc, char **argv)
{
	struct peer_library library = {};

	library.program = "fabrex-perf-gloo";
	library.operations = operations;
	library.count = sizeof(operations) / sizeof(*operations);
	library.barrier = caught<barrier>;
	library.open = open;
	library.close = close;
	library.version = version;
	library.shared = make_meeting;
	return peer_main(argc, argv, &library);
}
