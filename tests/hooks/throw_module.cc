// throw_module.cc - a C++ module that is opened late; it throws through a frame of its own and out to whoever called.
#include <stdexcept>
#include <string>

extern "C" int module_catches(int value)
{
    try {
        if (value)
            throw std::runtime_error("inside " + std::to_string(value));
    } catch (const std::exception &e) {
        return static_cast<int>(std::string(e.what()).size());
    }
    return 0;
}

extern "C" void module_throws(int value)
{
    throw value;
}
