/* The agent of the benchmarks: reads all of stdin, answers at once. */
#include <unistd.h>

int main(void) {
    static char read_buffer[65536];
    static const char said[] = "{\"text\": \"done\"}\n";
    while (read(0, read_buffer, sizeof read_buffer) > 0) {}
    return write(1, said, sizeof said - 1) == sizeof said - 1 ? 0 : 1;
}
