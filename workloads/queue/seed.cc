// SPDX-License-Identifier: MIT
// The queue that began it: Michael and Scott's in C++ with std::atomic and new/delete for each node,
// as it is commonly written, but safe: hazard pointers keep a node until nobody reads it.  It stands
// beside the C queues because at -O0 much of its time goes into std::atomic's wrappers, which C does
// not have.
//
//   seed-queue [--items N] [--producers P] [--consumers C]
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>
#include <vector>

constexpr unsigned threads_max = 64;
constexpr std::size_t retired_max = 512;
constexpr std::uint64_t backlog_max = 1000000;

template <typename T> struct Node {
    T data;
    std::atomic<Node *> next;
    explicit Node(const T &value) : data(value), next(nullptr) {}
};

template <typename T> class LockFreeQueue {
    struct alignas(64) Hazards {
        std::atomic<Node<T> *> slot[2];
    };
    alignas(64) std::atomic<Node<T> *> head;
    alignas(64) std::atomic<Node<T> *> tail;
    Hazards hazards[threads_max];
    std::mutex lock;
    std::vector<Node<T> *> left;

    void release(std::vector<Node<T> *> &retired)
    {
        std::vector<Node<T> *> kept;
        std::atomic_thread_fence(std::memory_order_seq_cst);
        for (Node<T> *node : retired) {
            bool used = false;
            for (const Hazards &h : hazards)
                for (const std::atomic<Node<T> *> &slot : h.slot)
                    used = used || slot.load(std::memory_order_acquire) == node;
            if (used)
                kept.push_back(node);
            else
                delete node;
        }
        retired.swap(kept);
    }

    Node<T> *protect(const std::atomic<Node<T> *> &from, std::atomic<Node<T> *> &slot)
    {
        for (;;) {
            Node<T> *node = from.load(std::memory_order_acquire);
            slot.store(node, std::memory_order_seq_cst);
            if (from.load(std::memory_order_seq_cst) == node)
                return node;
        }
    }

public:
    LockFreeQueue() : hazards()
    {
        Node<T> *first = new Node<T>(T());
        head.store(first);
        tail.store(first);
    }

    ~LockFreeQueue()
    {
        for (Node<T> *node = head.load(); node;) {
            Node<T> *next = node->next.load();
            delete node;
            node = next;
        }
        for (Node<T> *node : left)
            delete node;
    }

    void push(const T &value, unsigned thread)
    {
        Node<T> *node = new Node<T>(value);
        for (;;) {
            Node<T> *last = protect(tail, hazards[thread].slot[0]);
            Node<T> *next = last->next.load(std::memory_order_acquire);
            if (next) {
                tail.compare_exchange_weak(last, next, std::memory_order_release);
            } else if (last->next.compare_exchange_weak(next, node, std::memory_order_release)) {
                tail.compare_exchange_strong(last, node, std::memory_order_release);
                return;
            }
        }
    }

    bool pop(T &result, unsigned thread, std::vector<Node<T> *> &retired)
    {
        for (;;) {
            Node<T> *first = protect(head, hazards[thread].slot[0]);
            Node<T> *last = tail.load(std::memory_order_acquire);
            Node<T> *next = protect(first->next, hazards[thread].slot[1]);
            if (head.load(std::memory_order_seq_cst) != first)
                continue;
            if (!next)
                return false;
            if (first == last) {
                tail.compare_exchange_weak(last, next, std::memory_order_release);
                continue;
            }
            result = next->data;
            if (head.compare_exchange_weak(first, next, std::memory_order_release)) {
                retired.push_back(first);
                if (retired.size() >= retired_max)
                    release(retired);
                return true;
            }
        }
    }

    /* The thread is done; what others may still read is kept until the end. */
    void leave(std::vector<Node<T> *> &retired)
    {
        release(retired);
        std::lock_guard<std::mutex> guard(lock);
        left.insert(left.end(), retired.begin(), retired.end());
        retired.clear();
    }
};

static std::atomic<std::uint64_t> pushed, popped, sum;

static void produce(LockFreeQueue<std::uint64_t> &queue, unsigned thread, std::uint64_t count)
{
    for (std::uint64_t i = 1; i <= count; i++) {
        queue.push(i, thread);
        if (i % 1024 == 0 || i == count) {
            pushed += i % 1024 ? i % 1024 : 1024;
            while (pushed.load() - popped.load() > backlog_max && pushed.load() > popped.load())
                std::this_thread::yield();
        }
    }
}

static void consume(LockFreeQueue<std::uint64_t> &queue, unsigned thread, std::uint64_t total)
{
    std::vector<Node<std::uint64_t> *> retired;
    std::uint64_t own = 0, told = 0, own_sum = 0, value;
    while (popped.load(std::memory_order_relaxed) < total) {
        bool found = queue.pop(value, thread, retired);
        if (found) {
            own++;
            own_sum += value;
        }
        if (!found || own - told == 1024) {
            popped += own - told;
            told = own;
        }
        if (!found)
            std::this_thread::yield();
    }
    sum += own_sum;
    queue.leave(retired);
}

static std::uint64_t argument(int argc, char **argv, const char *name, std::uint64_t fallback)
{
    for (int i = 1; i + 1 < argc; i += 2)
        if (std::strcmp(argv[i], name) == 0)
            return std::strtoull(argv[i + 1], nullptr, 10);
    return fallback;
}

/* Of this program alone: getrusage() counts what it was before exec, too. */
static long peak_bytes()
{
    char line[256];
    long kib = 0;
    if (std::FILE *status = std::fopen("/proc/self/status", "r")) {
        while (std::fgets(line, sizeof(line), status))
            std::sscanf(line, "VmHWM: %ld", &kib);
        std::fclose(status);
    }
    return kib * 1024;
}

int main(int argc, char **argv)
{
    const std::uint64_t items = argument(argc, argv, "--items", 10000000);
    const std::uint64_t producers = argument(argc, argv, "--producers", 1);
    const std::uint64_t consumers = argument(argc, argv, "--consumers", 1);
    if (items == 0 || producers == 0 || consumers == 0 || producers + consumers > threads_max) {
        std::fprintf(stderr, "usage: seed-queue [--items N] [--producers P] [--consumers C]\n");
        return 2;
    }
    LockFreeQueue<std::uint64_t> queue;
    std::vector<std::thread> threads;
    const std::uint64_t each = items / producers, total = each * producers;
    const auto start = std::chrono::steady_clock::now();
    for (unsigned i = 0; i < producers; i++)
        threads.emplace_back([&queue, i, each] { produce(queue, i, each); });
    for (unsigned i = 0; i < consumers; i++)
        threads.emplace_back([&queue, i, producers, total] {
            consume(queue, unsigned(producers) + i, total);
        });
    for (std::thread &thread : threads)
        thread.join();
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
    if (sum != producers * (each * (each + 1) / 2)) {
        std::fprintf(stderr, "seed-queue: what arrived is not what was sent\n");
        return 1;
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    const double cpu = double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                       double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    const char *fd = std::getenv("ASSAY_METRICS_FD");
    dprintf(fd ? std::atoi(fd) : 1,
            "assay.metric mops %.6g Mops/s\nassay.metric cpu_ns_per_op %.6g ns\n"
            "assay.metric peak_bytes %ld B\n",
            double(total) / wall.count() / 1e6, cpu * 1e9 / double(total), peak_bytes());
    return 0;
}
