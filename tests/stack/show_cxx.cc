/* show_cxx.cc - the same from C++: through templates, virtual functions, lambdas, a handler of an exception, a thread and
 * destructors that run while an exception is on its way. Compiled without frame pointers. Run by gdb.sh. */
#include <algorithm>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/stack/show.h"

namespace {

std::string how;

struct Step {
    virtual ~Step() = default;
    virtual int run(int left) = 0;
};

template <int N> struct Deeper : Step {
    int run(int left) override
    {
        std::function<int(int)> next = [](int l) { return Deeper<N - 1>().run(l) + 1; };
        return next(left - 1) + N;
    }
};

struct Shows {
    ~Shows()
    {
        if (how == "destructor")
            show_stack();
        how += "!";
    }
};

template <> struct Deeper<0> : Step {
    __attribute__((noinline)) int run(int) override
    {
        Shows shows;
        if (how == "destructor" || how == "catch")
            throw std::runtime_error("on its way");
        show_stack();
        return 1;
    }
};

int sorted(bool again)
{
    std::vector<int> values = { 3, 1, 2 };
    std::sort(values.begin(), values.end(), [&](int a, int b) {
        if (again) {
            again = false;
            Deeper<6>().run(6);
        }
        return a < b;
    });
    return values[0];
}

int everything()
{
    try {
        return sorted(true);
    } catch (const std::exception &) {
        if (how == "catch!")
            show_stack();
        return 0;
    }
}

} // namespace

int main(int argc, char **argv)
{
    how = argc > 1 ? argv[1] : "plain";
    if (how == "thread")
        std::thread(everything).join();
    else
        everything();
    return 0;
}
