import Glibc

public struct ProcessUsage: Sendable {
  /// CPU seconds, user and system, of all threads.
  public var cpuSeconds: Double
  /// Bytes of resident memory; 0 if /proc is not mounted.
  public var residentBytes: Int
  /// The soft limit of open file descriptors.
  public var descriptorLimit: Int
  /// Open file descriptors; 0 if /proc is not mounted.
  public var openDescriptors: Int
  /// The start of the process in Unix seconds; 0 if /proc is not mounted.
  public var startTime: Double

  public static func current() -> ProcessUsage {
    var usage = rusage()
    getrusage(RUSAGE_SELF.rawValue, &usage)
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    return ProcessUsage(
      cpuSeconds: seconds(usage.ru_utime) + seconds(usage.ru_stime),
      residentBytes: residentPages() * sysconf(Int32(_SC_PAGESIZE)),
      descriptorLimit: Int(clamping: limit.rlim_cur), openDescriptors: countDescriptors(), startTime: began)
  }

  /// Raises the soft limit of open descriptors to the hard limit.
  /// - Returns: the new limit.
  public static func raiseDescriptorLimit() -> Int {
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    var limit = rlimit()
    getrlimit(resource, &limit)
    limit.rlim_cur = limit.rlim_max
    setrlimit(resource, &limit)
    getrlimit(resource, &limit)
    return Int(clamping: limit.rlim_cur)
  }

  public static var isOutOfDescriptors: Bool {
    let raw = open("/dev/null", O_RDONLY | O_CLOEXEC)
    if raw >= 0 { close(raw) }
    return raw < 0
  }

  private static func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }

  private static func countDescriptors() -> Int {
    guard let folder = opendir("/proc/self/fd") else { return 0 }
    defer { closedir(folder) }
    var count = 0
    while let entry = readdir(folder) { if entry.pointee.d_name.0 != CChar(UInt8(ascii: ".")) { count += 1 } }
    // Excludes the descriptor of this listing.
    return max(count - 1, 0)
  }

  /// The 22nd field of /proc/self/stat, in clock ticks since boot (proc(5)). A service that sees only processes in /proc has no
  /// /proc/stat with the boot time.
  private static let began: Double = {
    guard let own = try? FileContents.read("/proc/self/stat"), let end = own.lastIndex(of: UInt8(ascii: ")")) else { return 0 }
    let fields = own[end...].split(separator: 0x20)
    guard fields.count > 20, let ticks = Double(String(decoding: fields[20], as: UTF8.self)) else { return 0 }
    let boot = SystemClock.nanoseconds(CLOCK_REALTIME) - SystemClock.nanoseconds(CLOCK_BOOTTIME)
    return Double(boot) / 1e9 + ticks / Double(sysconf(Int32(_SC_CLK_TCK)))
  }()

  /// The second number of /proc/self/statm (proc(5)).
  private static func residentPages() -> Int {
    guard let text = try? FileContents.read("/proc/self/statm") else { return 0 }
    let fields = text.split(separator: 0x20)
    return fields.count > 1 ? Int(String(decoding: fields[1], as: UTF8.self)) ?? 0 : 0
  }
}
