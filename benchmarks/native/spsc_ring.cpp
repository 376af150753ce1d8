// A hand-written single-producer single-consumer ring between two processes: the peer our ring is measured
// against. Acquire and release on head and tail, each on a 128-byte line of its own; either side keeps its last
// look at the other's index to itself; slots are committed by one release store per published run.
//
//   spsc_ring ROWS SLOTS PUBLISH PRODUCER_CORE CONSUMER_CORE ROUNDS
//
// ROWS rows of 32 bytes cross in every round, PUBLISH at a time, copied in from a block of 1024 rows and out to
// another: both rings move their payload by memcpy, so that what differs is the ring. One warm-up round goes
// first. Prints one JSON object: the nanoseconds a row of every round, from the first claim until the consumer
// has released the last row, and the sum over the block the consumer holds in the end, by which the caller
// checks that the work was done.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include <csignal>
#include <immintrin.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr std::size_t kLine = 128;
// Rows in the producer's and the consumer's block; ROWS must be a multiple.
constexpr std::uint64_t kBlockRows = 1024;
constexpr int kSpinsBeforeYield = 4096;

struct Row {
  std::int64_t ts;
  std::uint64_t hash;
  std::uint64_t nulls;
  std::int64_t value;
};
static_assert(sizeof(Row) == 32);

struct Shared {
  alignas(kLine) std::atomic<std::uint64_t> tail{0};
  alignas(kLine) std::atomic<std::uint64_t> head{0};
  alignas(kLine) std::atomic<std::uint64_t> consumerRound{0};
  alignas(kLine) std::uint64_t checksum{0};
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

[[noreturn]] void fail(const char *what) {
  std::perror(what);
  std::exit(1);
}

void pin(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  if (sched_setaffinity(0, sizeof cores, &cores) != 0) fail("sched_setaffinity");
}

// Spins, and lets others run now and then: both sides may have been given the same core.
class Spin {
 public:
  void once() {
    if (++spins_ < kSpinsBeforeYield) {
      _mm_pause();
    } else {
      spins_ = 0;
      sched_yield();
    }
  }

 private:
  int spins_ = 0;
};

class Producer {
 public:
  Producer(Shared &shared, Row *slots, std::uint64_t capacity)
      : shared_(shared), slots_(slots), capacity_(capacity) {}

  void run(std::uint64_t round, std::uint64_t rows, std::uint64_t publish) {
    for (std::uint64_t k = 0; k < kBlockRows; ++k) block_[k] = {static_cast<std::int64_t>(k), k * 3, round, 5};
    const std::uint64_t end = tail_ + rows;
    while (tail_ != end) {
      const std::uint64_t inBlock = kBlockRows - tail_ % kBlockRows;
      const std::uint64_t wanted = inBlock < publish ? inBlock : publish;
      Spin spin;
      while (capacity_ - (tail_ - cachedHead_) < wanted) {
        cachedHead_ = shared_.head.load(std::memory_order_acquire);
        if (capacity_ - (tail_ - cachedHead_) < wanted) spin.once();
      }
      write(tail_, wanted);
      tail_ += wanted;
      shared_.tail.store(tail_, std::memory_order_release);
    }
    Spin spin;
    while (shared_.head.load(std::memory_order_acquire) != end) spin.once();
  }

 private:
  void write(std::uint64_t position, std::uint64_t count) {
    const Row *source = block_ + position % kBlockRows;
    const std::uint64_t slot = position & (capacity_ - 1);
    const std::uint64_t beforeWrap = count < capacity_ - slot ? count : capacity_ - slot;
    std::memcpy(slots_ + slot, source, beforeWrap * sizeof(Row));
    if (count > beforeWrap) std::memcpy(slots_, source + beforeWrap, (count - beforeWrap) * sizeof(Row));
  }

  Shared &shared_;
  Row *slots_;
  std::uint64_t capacity_;
  std::uint64_t tail_ = 0;
  std::uint64_t cachedHead_ = 0;
  alignas(kLine) Row block_[kBlockRows];
};

class Consumer {
 public:
  Consumer(Shared &shared, const Row *slots, std::uint64_t capacity)
      : shared_(shared), slots_(slots), capacity_(capacity) {}

  std::uint64_t run(std::uint64_t rows) {
    const std::uint64_t end = head_ + rows;
    while (head_ != end) {
      Spin spin;
      while (cachedTail_ == head_) {
        cachedTail_ = shared_.tail.load(std::memory_order_acquire);
        if (cachedTail_ == head_) spin.once();
      }
      const std::uint64_t ready = cachedTail_ - head_;
      const std::uint64_t inBlock = kBlockRows - head_ % kBlockRows;
      const std::uint64_t count = ready < inBlock ? ready : inBlock;
      read(head_, count);
      head_ += count;
      shared_.head.store(head_, std::memory_order_release);
    }
    std::uint64_t sum = 0;
    for (const Row &row : block_) {
      sum += static_cast<std::uint64_t>(row.ts) + row.hash + row.nulls + static_cast<std::uint64_t>(row.value);
    }
    return sum;
  }

 private:
  void read(std::uint64_t position, std::uint64_t count) {
    Row *target = block_ + position % kBlockRows;
    const std::uint64_t slot = position & (capacity_ - 1);
    const std::uint64_t beforeWrap = count < capacity_ - slot ? count : capacity_ - slot;
    std::memcpy(target, slots_ + slot, beforeWrap * sizeof(Row));
    if (count > beforeWrap) std::memcpy(target + beforeWrap, slots_, (count - beforeWrap) * sizeof(Row));
  }

  Shared &shared_;
  const Row *slots_;
  std::uint64_t capacity_;
  std::uint64_t head_ = 0;
  std::uint64_t cachedTail_ = 0;
  alignas(kLine) Row block_[kBlockRows];
};

std::uint64_t number(const char *text, const char *name) {
  char *end = nullptr;
  const std::uint64_t value = std::strtoull(text, &end, 10);
  if (end == text || *end != '\0') {
    std::fprintf(stderr, "spsc_ring: %s is %s; expected a number\n", name, text);
    std::exit(2);
  }
  return value;
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 7) {
    std::fprintf(stderr, "usage: spsc_ring ROWS SLOTS PUBLISH PRODUCER_CORE CONSUMER_CORE ROUNDS\n");
    return 2;
  }
  const std::uint64_t rows = number(argv[1], "ROWS");
  const std::uint64_t slots = number(argv[2], "SLOTS");
  const std::uint64_t publish = number(argv[3], "PUBLISH");
  const int producerCore = static_cast<int>(number(argv[4], "PRODUCER_CORE"));
  const int consumerCore = static_cast<int>(number(argv[5], "CONSUMER_CORE"));
  const std::uint64_t rounds = number(argv[6], "ROUNDS");
  if (slots == 0 || (slots & (slots - 1)) != 0 || publish == 0 || publish > slots ||
      rows % kBlockRows != 0) {
    std::fprintf(stderr,
                 "spsc_ring: SLOTS must be a power of two, PUBLISH between 1 and SLOTS, ROWS a multiple of 1024\n");
    return 2;
  }

  const std::size_t bytes = sizeof(Shared) + slots * sizeof(Row);
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail("mmap");
  std::memset(memory, 0, bytes);  // touch every page before the clock runs
  auto *shared = new (memory) Shared;
  auto *ring = reinterpret_cast<Row *>(static_cast<char *>(memory) + sizeof(Shared));

  const pid_t child = fork();
  if (child < 0) fail("fork");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pin(consumerCore);
    Consumer consumer(*shared, ring, slots);
    for (std::uint64_t round = 0; round <= rounds; ++round) {
      shared->consumerRound.store(round + 1, std::memory_order_release);
      shared->checksum = consumer.run(rows);
    }
    _exit(0);
  }

  pin(producerCore);
  Producer producer(*shared, ring, slots);
  std::printf("{\"ns_per_row\": [");
  for (std::uint64_t round = 0; round <= rounds; ++round) {
    Spin spin;
    while (shared->consumerRound.load(std::memory_order_acquire) <= round) spin.once();
    const auto begin = std::chrono::steady_clock::now();
    producer.run(round, rows, publish);
    const auto end = std::chrono::steady_clock::now();
    const double elapsed = std::chrono::duration<double, std::nano>(end - begin).count();
    if (round > 0) std::printf("%s%.4f", round > 1 ? ", " : "", elapsed / static_cast<double>(rows));
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 0) {
    std::fprintf(stderr, "spsc_ring: the consumer failed with status %d\n", status);
    return 1;
  }
  std::printf("], \"checksum\": %llu}\n", static_cast<unsigned long long>(shared->checksum));
  return 0;
}
