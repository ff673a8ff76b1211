import Reactor

extension MetricsFormat {
  /// The program's version and process metrics, the same for workers and gateways.
  package mutating func process(_ usage: ProcessUsage, version: String) {
    gauges("pushfleet_build_info", "The version of the running program.", [([("version", version)], 1)])
    family("process_cpu_seconds_total", "counter", "CPU time, user and system.", [([], "\(usage.cpuSeconds)")])
    gauge("process_resident_memory_bytes", usage.residentBytes, "Resident memory.")
    gauge("process_start_time_seconds", usage.startTime, "Start time of the process, in Unix time.")
    gauge("process_open_fds", usage.openDescriptors, "Open file descriptors.")
    gauge("process_max_fds", usage.descriptorLimit, "Maximum number of open file descriptors.")
  }
}
