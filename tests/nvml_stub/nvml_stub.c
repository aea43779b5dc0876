/* A stand-in for libnvidia-ml.so.1: what nvidia-ml-py asks of it for one GPU, with values and failures that a test sets.
 * It exercises the binding and our logic, and says nothing about a real driver. */

#include <stdint.h>
#include <string.h>

enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7 };

typedef struct { uint64_t total, free, used; } Memory;
typedef struct { uint32_t pid; uint64_t used; uint32_t gpu_instance, compute_instance; } Process;

static uint64_t total_bytes, used_bytes, process_bytes;
static uint32_t process_pid;
static int fail_code, calls, sessions;
static char fail_name[64];

/* --- what a test sets and asks --------------------------------------------------------------------------------- */

void stub_set_memory(uint64_t total, uint64_t used) { total_bytes = total; used_bytes = used; }

/* A process on the GPU; pid 0 for none, ~0 bytes for "the driver does not tell", as under WDDM. */
void stub_set_process(uint32_t pid, uint64_t bytes) { process_pid = pid; process_bytes = bytes; }

/* From now on the call of this name gives this code; "" for no call. */
void stub_fail(const char *name, int code) {
    strncpy(fail_name, name, sizeof fail_name - 1);
    fail_code = code;
}

void stub_reset(void) { calls = sessions = 0; }
int stub_calls(void) { return calls; }
int stub_sessions(void) { return sessions; }

/* --- NVML ------------------------------------------------------------------------------------------------------ */

static int enter(const char *name, int needs_session) {
    calls++;
    if (fail_name[0] && strcmp(name, fail_name) == 0) return fail_code;
    return needs_session && sessions == 0 ? UNINITIALIZED : SUCCESS;
}

int nvmlInitWithFlags(unsigned flags) {
    int code = enter("nvmlInitWithFlags", 0);
    (void)flags;
    if (code == SUCCESS) sessions++;
    return code;
}

int nvmlShutdown(void) {
    int code = enter("nvmlShutdown", 1);
    if (code == SUCCESS) sessions--;
    return code;
}

const char *nvmlErrorString(int code) { return code == 15 ? "GPU is lost" : "an error of the stub"; }

int nvmlSystemGetDriverVersion(char *version, unsigned length) {
    int code = enter("nvmlSystemGetDriverVersion", 1);
    if (code == SUCCESS) strncpy(version, "580.00 stub", length);
    return code;
}

int nvmlDeviceGetCount_v2(unsigned *count) {
    *count = 1;
    return enter("nvmlDeviceGetCount_v2", 1);
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
    static int gpu;
    *device = &gpu;
    return index == 0 ? enter("nvmlDeviceGetHandleByIndex_v2", 1) : INVALID_ARGUMENT;
}

int nvmlDeviceGetName(void *device, char *name, unsigned length) {
    (void)device;
    strncpy(name, "Stub GPU", length);
    return enter("nvmlDeviceGetName", 1);
}

int nvmlDeviceGetMemoryInfo(void *device, Memory *memory) {
    (void)device;
    memory->total = total_bytes, memory->used = used_bytes, memory->free = total_bytes - used_bytes;
    return enter("nvmlDeviceGetMemoryInfo", 1);
}

int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor) {
    (void)device;
    *major = 8, *minor = 6;
    return enter("nvmlDeviceGetCudaComputeCapability", 1);
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, Process *processes) {
    unsigned room = *count, present = process_pid != 0;
    int code = enter("nvmlDeviceGetComputeRunningProcesses_v3", 1);
    (void)device;
    *count = present;
    if (code != SUCCESS || !present) return code;
    if (room < present) return INSUFFICIENT_SIZE;
    processes[0] = (Process){process_pid, process_bytes, ~0u, ~0u};
    return SUCCESS;
}
