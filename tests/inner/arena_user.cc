/* arena_user.cc - memshim.h from C++: a memory resource whose pieces of device memory are reported, as
 * std::pmr::memory_resource has it where the standard does. Prints what the report must say: live, count,
 * peak, and 1 if memshim knows the pool. Compiled by cxx.py, under every standard. */
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <new>
#include <vector>
#if __cplusplus >= 201703L
#include <memory_resource>
using Resource = std::pmr::memory_resource;
#else
struct Resource {
    virtual ~Resource() = default;
    void *allocate(std::size_t bytes, std::size_t align = alignof(std::max_align_t))
    {
        return do_allocate(bytes, align);
    }
    void deallocate(void *piece, std::size_t bytes, std::size_t align = alignof(std::max_align_t))
    {
        do_deallocate(piece, bytes, align);
    }

  private:
    virtual void *do_allocate(std::size_t bytes, std::size_t align) = 0;
    virtual void do_deallocate(void *piece, std::size_t bytes, std::size_t align) = 0;
    virtual bool do_is_equal(const Resource &other) const noexcept = 0;
};
#endif

#include <memshim.h>

extern "C" int cudaMalloc(void **pointer, std::size_t bytes);
extern "C" int cudaFree(void *pointer);

namespace
{

std::uint64_t live, count, peak;

/* Pieces side by side; all of it is free again once the last one was given back. */
class Arena final : public Resource
{
  public:
    Arena(const char *name, std::size_t bytes) : pool_(MEMSHIM_POOL(name)), bytes_(bytes)
    {
        void *memory = nullptr;
        if (cudaMalloc(&memory, bytes) != 0)
            throw std::bad_alloc();
        memory_ = static_cast<char *>(memory);
    }
    Arena(const Arena &) = delete;
    Arena &operator=(const Arena &) = delete;
    ~Arena() override
    {
        cudaFree(memory_);
    }
    bool is_known() const
    {
        return pool_ != 0;
    }

  private:
    void *do_allocate(std::size_t bytes, std::size_t align) override
    {
        std::size_t at = (used_ + align - 1) / align * align;
        if (at + bytes > bytes_)
            throw std::bad_alloc();
        used_ = at + bytes;
        pieces_++;
        MEMSHIM_INNER_ALLOC(pool_, memory_ + at, bytes);
        live += bytes;
        count++;
        peak = std::max(peak, live);
        return memory_ + at;
    }
    void do_deallocate(void *piece, std::size_t bytes, std::size_t) override
    {
        MEMSHIM_INNER_FREE(piece);
        used_ = --pieces_ ? used_ : 0;
        live -= bytes;
        count--;
    }
    bool do_is_equal(const Resource &other) const noexcept override
    {
        return this == &other;
    }

    std::uint64_t pool_;
    std::size_t bytes_, used_ = 0, pieces_ = 0;
    char *memory_ = nullptr;
};

template <typename T> void *take(Resource &resource, std::size_t elements)
{
    return resource.allocate(elements * sizeof(T), alignof(T));
}

} // namespace

int main()
{
    /* Their memory stays, and what is in it. */
    Arena &weights = *new Arena("weights", 1 << 20), &cache = *new Arena("cache", 1 << 20);
    std::vector<void *> held;
    MEMSHIM_PHASE_PUSH("fill");
    for (std::size_t i = 1; i <= 20; i++)
        held.push_back(take<double>(weights, 100 * i));
    take<char>(cache, 4097);
    MEMSHIM_PHASE_POP();
    std::uint64_t phase = MEMSHIM_PHASE_BEGIN("empty");
    for (std::size_t i = 1; i <= 10; i++)
        weights.deallocate(held[i - 1], 800 * i, alignof(double));
    MEMSHIM_PHASE_END(phase);
    MEMSHIM_PHASE_MARK("emptied");
    std::printf("%llu %llu %llu %d\n", static_cast<unsigned long long>(live),
                static_cast<unsigned long long>(count), static_cast<unsigned long long>(peak),
                weights.is_known() && cache.is_known());
    return 0;
}
