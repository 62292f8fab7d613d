/*
 * torch_async.cc - PyTorch's allocator over cudaMallocAsync, out of libc10_cuda.so, as PyTorch drives it: tensors' blocks on several
 * streams, record_stream, threads, peers, statistics, the cache emptied, memory's end, and captures with blocks of their own.
 *
 * Prints "what value" lines for peers.py, which wants the same natively and under memshim. The backend is chosen by
 * PYTORCH_CUDA_ALLOC_CONF, before the program begins.
 */
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/cuda/PeerToPeerAccess.h>
#include <cuda_runtime_api.h>

namespace allocator = c10::cuda::CUDACachingAllocator;

/* Exported, and in no header. The part of PyTorch that is not here calls it when it is loaded. */
namespace c10::cuda::_internal
{
void setHasPrimaryContext(bool (*function)(c10::DeviceIndex));
}

namespace
{

constexpr size_t MIB = size_t{1} << 20;
constexpr int STREAMS = 6;

void say(const char *what, long long value)
{
    std::printf("%s %lld\n", what, value);
}

struct block {
    unsigned char *address;
    size_t bytes;
    int stream;
    unsigned char value;
};

/* Both ends of the block hold what was put there. Waits for the stream. */
bool holds(const block &b, cudaStream_t stream)
{
    unsigned char first = 0, last = 0;

    C10_CUDA_CHECK(cudaMemcpyAsync(&first, b.address, 1, cudaMemcpyDeviceToHost, stream));
    C10_CUDA_CHECK(cudaMemcpyAsync(&last, b.address + b.bytes - 1, 1, cudaMemcpyDeviceToHost, stream));
    C10_CUDA_CHECK(cudaStreamSynchronize(stream));
    return first == b.value && last == b.value;
}

/* What a tensor's record_stream() does. */
void used_on(void *address, cudaStream_t stream)
{
    c10::DataPtr pointer(address, address, allocator::get()->raw_deleter(), c10::Device(c10::DeviceType::CUDA, 0));

    allocator::recordStream(pointer, c10::cuda::getStreamFromExternal(stream, 0));
    pointer.release_context();
}

/* A walk of allocations and frees; how many blocks did not hold what was written last. */
long walk(const std::vector<cudaStream_t> &streams, unsigned seed, int steps)
{
    std::mt19937 random(seed);
    std::vector<block> live;
    long wrong = 0;

    for (int i = 0; i < steps; i++) {
        if (live.size() < 40 && random() % 100 < 55) {
            int stream = static_cast<int>(random() % streams.size());
            size_t bytes = 1 + random() % (random() % 8 ? 40000 : 5 * MIB);
            block b{nullptr, bytes, stream, static_cast<unsigned char>(random())};
            b.address = static_cast<unsigned char *>(allocator::raw_alloc_with_stream(bytes, streams[stream]));
            C10_CUDA_CHECK(cudaMemsetAsync(b.address, b.value, bytes, streams[stream]));
            live.push_back(b);
        } else if (!live.empty()) {
            size_t which = random() % live.size();
            block b = live[which];
            live[which] = live.back();
            live.pop_back();
            if (random() % 4 == 0) { /* another stream reads it, behind an event, and says so */
                cudaStream_t other = streams[random() % streams.size()];
                cudaEvent_t event;
                C10_CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
                C10_CUDA_CHECK(cudaEventRecord(event, streams[b.stream]));
                C10_CUDA_CHECK(cudaStreamWaitEvent(other, event, 0));
                used_on(b.address, other);
                wrong += !holds(b, other);
                C10_CUDA_CHECK(cudaEventDestroy(event));
            } else if (random() % 2) {
                wrong += !holds(b, streams[b.stream]);
            }
            allocator::raw_delete(b.address);
        }
    }
    for (const block &b : live) {
        wrong += !holds(b, streams[b.stream]);
        allocator::raw_delete(b.address);
    }
    return wrong;
}

std::vector<cudaStream_t> new_streams()
{
    std::vector<cudaStream_t> streams{nullptr};

    for (int i = 1; i < STREAMS; i++)
        streams.push_back(c10::cuda::getStreamFromPool(i % 2 == 0, 0).stream());
    return streams;
}

/* What was in use at most depends on when streams came to their frees, but where nothing is freed. */
void statistics(const char *when, bool repeatable = false)
{
    C10_CUDA_CHECK(cudaDeviceSynchronize());
    auto stats = allocator::getDeviceStats(0);
    long long used = stats.allocated_bytes[0].current, reserved = stats.reserved_bytes[0].current;

    std::printf("%s.allocated %lld\n", when, used);
    if (repeatable)
        std::printf("%s.allocated_peak %lld\n", when, static_cast<long long>(stats.allocated_bytes[0].peak));
    std::printf("%s.reserved_holds_it %d\n", when, reserved >= used);
    std::printf("%s.peaks_hold_both %d\n", when,
                stats.reserved_bytes[0].peak >= reserved && stats.reserved_bytes[0].peak >= stats.allocated_bytes[0].peak);
}

void figures(const std::vector<cudaStream_t> &streams)
{
    std::vector<void *> blocks;

    allocator::emptyCache();
    allocator::resetPeakStats(0);
    statistics("figures.empty");
    say("figures.empty.reserved", allocator::getDeviceStats(0).reserved_bytes[0].current);
    for (size_t bytes : {size_t{1}, size_t{511}, size_t{512}, size_t{513}, 3 * MIB + 1, 64 * MIB, 20 * MIB})
        blocks.push_back(allocator::raw_alloc_with_stream(bytes, streams[blocks.size() % streams.size()]));
    statistics("figures.seven", true);
    for (void *block : blocks)
        allocator::raw_delete(block);
    C10_CUDA_CHECK(cudaDeviceSynchronize());
    auto stats = allocator::getDeviceStats(0);
    say("figures.freed", stats.allocated_bytes[0].current);
    say("figures.kept", stats.reserved_bytes[0].current >= static_cast<long long>(64 * MIB)); /* the threshold is endless */
    allocator::emptyCache();
    statistics("figures.emptied");
    say("figures.emptied.reserved", allocator::getDeviceStats(0).reserved_bytes[0].current);
    allocator::resetPeakStats(0);
    allocator::resetAccumulatedStats(0);
    statistics("figures.reset");
}

void threads()
{
    std::vector<std::thread> all;
    std::vector<long> wrong(4);

    for (unsigned i = 0; i < wrong.size(); i++)
        all.emplace_back([i, &wrong] {
            C10_CUDA_CHECK(cudaSetDevice(0));
            wrong[i] = walk(new_streams(), 100 + i, 1500);
        });
    for (std::thread &thread : all)
        thread.join();
    say("threads.wrong", wrong[0] + wrong[1] + wrong[2] + wrong[3]);
}

void peers(const std::vector<cudaStream_t> &streams)
{
    void *here = allocator::raw_alloc_with_stream(MIB, streams[1]), *there;

    C10_CUDA_CHECK(cudaMemsetAsync(here, 77, MIB, streams[1]));
    C10_CUDA_CHECK(cudaStreamSynchronize(streams[1]));
    say("peers.access", c10::cuda::get_p2p_access(1, 0));
    C10_CUDA_CHECK(cudaSetDevice(1));
    there = allocator::raw_alloc_with_stream(MIB, nullptr);
    say("peers.copy", allocator::get()->memcpyAsync(there, 1, here, 0, MIB, nullptr, true));
    say("peers.holds", holds({static_cast<unsigned char *>(there), MIB, 0, 77}, nullptr));
    allocator::raw_delete(there);
    C10_CUDA_CHECK(cudaSetDevice(0));
    allocator::raw_delete(here);
}

/* As torch.cuda.graph does: what is allocated meanwhile belongs to the graph. */
void capture(const std::vector<cudaStream_t> &streams, cudaStreamCaptureMode mode, const char *name)
{
    cudaStream_t stream = c10::cuda::getStreamFromPool(false, 0).stream();
    c10::MempoolId_t id{0, static_cast<unsigned long long>(mode) + 7};
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    auto *out = static_cast<unsigned char *>(allocator::raw_alloc_with_stream(8 * MIB, stream));
    auto *before = static_cast<unsigned char *>(allocator::raw_alloc_with_stream(MIB, stream));
    unsigned char *inside = nullptr, *kept = nullptr;
    long wrong = 0;

    C10_CUDA_CHECK(cudaMemsetAsync(out, 0, 8 * MIB, stream));
    C10_CUDA_CHECK(cudaStreamSynchronize(stream));
    allocator::beginAllocateToPool(0, id, [stream](cudaStream_t one) { return one == stream; });
    C10_CUDA_CHECK(cudaStreamBeginCapture(stream, mode));
    for (int i = 0; i < 8; i++) {
        inside = static_cast<unsigned char *>(allocator::raw_alloc_with_stream(MIB, stream));
        C10_CUDA_CHECK(cudaMemsetAsync(inside, i + 1, MIB, stream));
        C10_CUDA_CHECK(cudaMemcpyAsync(out + i * MIB, inside, MIB, cudaMemcpyDeviceToDevice, stream));
        allocator::raw_delete(inside);
    }
    kept = static_cast<unsigned char *>(allocator::raw_alloc_with_stream(2 * MIB, stream));
    C10_CUDA_CHECK(cudaMemsetAsync(kept, 99, 2 * MIB, stream));
    allocator::raw_delete(before); /* of before the capture, freed in it: put off until it is over */
    C10_CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
    allocator::endAllocateToPool(0, id);
    C10_CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
    size_t nodes = 0;
    C10_CUDA_CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
    std::printf("%s.nodes %zu\n", name, nodes);
    for (int i = 0; i < 20; i++) {
        cudaStream_t on = streams[i % streams.size()];
        C10_CUDA_CHECK(cudaMemsetAsync(out, 0, 8 * MIB, on));
        if (i == 0) {
            C10_CUDA_CHECK(cudaGraphLaunch(exec, on)); /* kept is the graph's: once without a free */
            wrong += !holds({kept, 2 * MIB, 0, 99}, on);
            for (int k = 0; k < 8; k++)
                wrong += !holds({out + k * MIB, MIB, 0, static_cast<unsigned char>(k + 1)}, on);
        }
        void *other = allocator::raw_alloc_with_stream(300000 + i, on);
        allocator::raw_delete(other);
        C10_CUDA_CHECK(cudaStreamSynchronize(on));
    }
    std::printf("%s.wrong %ld\n", name, wrong);
    allocator::raw_delete(kept);
    C10_CUDA_CHECK(cudaStreamSynchronize(stream)); /* no order between it and the next launch otherwise, which takes it again */
    std::printf("%s.launch_again %d\n", name, cudaGraphLaunch(exec, streams[0]));
    C10_CUDA_CHECK(cudaDeviceSynchronize());
    C10_CUDA_CHECK(cudaDeviceSynchronize());
    cuuint64_t value = 0;
    C10_CUDA_CHECK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &value));
    std::printf("%s.graphs_use %llu\n", name, static_cast<unsigned long long>(value));
    C10_CUDA_CHECK(cudaFreeAsync(kept, streams[0])); /* that of the second launch; PyTorch has forgotten it */
    C10_CUDA_CHECK(cudaGraphExecDestroy(exec));
    C10_CUDA_CHECK(cudaGraphDestroy(graph));
    allocator::get()->releasePool(0, id);
    std::printf("%s.trim %d\n", name, cudaDeviceGraphMemTrim(0));
    allocator::raw_delete(out);
}

void end_of_memory(const std::vector<cudaStream_t> &streams)
{
    std::vector<void *> blocks;
    size_t largest = 0;
    bool refused = false;

    C10_CUDA_CHECK(cudaDeviceSynchronize());
    C10_CUDA_CHECK(cudaDeviceGraphMemTrim(0));
    allocator::emptyCache();
    try {
        for (int i = 0; i < 100000; i++)
            blocks.push_back(allocator::raw_alloc_with_stream(16 * MIB, streams[1]));
    } catch (const c10::OutOfMemoryError &error) {
        refused = true;
    }
    say("end.refused", refused);
    say("end.most", static_cast<long long>(blocks.size()));
    cudaGetLastError();
    for (size_t i = 0; i < blocks.size(); i += 2)
        allocator::raw_delete(blocks[i]);
    for (size_t i = 1; i < blocks.size(); i += 2)
        allocator::raw_delete(blocks[i]);
    C10_CUDA_CHECK(cudaDeviceSynchronize());
    allocator::emptyCache();
    statistics("end");
    allocator::cacheInfo(0, &largest); /* tries sizes, down from what the device says is free */
    say("end.largest_is_most", largest > 900 * MIB);
    allocator::emptyCache();
    allocator::setMemoryFraction(0.5, 0);
    refused = false;
    try {
        void *too_much = allocator::raw_alloc_with_stream(700 * MIB, streams[2]);
        allocator::raw_delete(too_much);
    } catch (const c10::OutOfMemoryError &error) {
        refused = true;
    }
    say("end.fraction_refuses", refused);
    allocator::setMemoryFraction(1.0, 0);
}

} // namespace

int main()
{
    C10_CUDA_CHECK(cudaSetDevice(0));
    c10::cuda::detail::init_p2p_access_cache(2); /* PyTorch does both when it opens the devices */
    allocator::init(2);
    c10::cuda::_internal::setHasPrimaryContext([](c10::DeviceIndex) { return true; });
    std::printf("backend.%s 1\n", allocator::get()->name().c_str());
    std::vector<cudaStream_t> streams = new_streams();
    say("walk.wrong", walk(streams, 1, 4000));
    statistics("walk");
    figures(streams);
    threads();
    statistics("threads");
    peers(streams);
    capture(streams, cudaStreamCaptureModeGlobal, "global");
    capture(streams, cudaStreamCaptureModeThreadLocal, "thread_local");
    capture(streams, cudaStreamCaptureModeRelaxed, "relaxed");
    statistics("captures");
    end_of_memory(streams);
    say("synchronize", cudaDeviceSynchronize());
    return 0;
}
