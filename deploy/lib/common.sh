# Sourced by the scripts in deploy/ and dev/: finds Swift, starts private services on loopback, and stops exactly those.
# Writes only in one scratch folder and in the package's .build.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# Debian's Python, which has python3-h2 and python3-pika; PATH may name another one.
python=/usr/bin/python3
scratch=
# The output is UTF-8, whatever the machine's locale.
export LC_ALL=C.UTF-8
started=() # process group ids, in starting order

# shellcheck disable=SC2034  # the sourcing scripts use them
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
  bold=$'\e[1m' dim=$'\e[2m' red=$'\e[31m' green=$'\e[32m' plain=$'\e[0m'
else
  bold='' dim='' red='' green='' plain=''
fi

heading() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
note() { printf '%s%s%s\n' "$dim" "$*" "$plain"; }
fail() {
  printf '%s%s: %s%s\n' "$red" "${0##*/}" "$*" "$plain" >&2
  exit 1
}

# Puts `swift` into PATH, or fails with instructions.
require_swift() {
  local folder
  if ! command -v swift >/dev/null; then
    for folder in /opt/swift/usr/bin /opt/swift*/usr/bin /usr/local/swift/usr/bin /usr/share/swift/usr/bin \
      "${HOME:-/root}/.local/share/swiftly/bin"; do
      if [ -x "$folder/swift" ]; then
        PATH="$PATH:$folder"
        break
      fi
    done
  fi
  command -v swift >/dev/null || fail "no swift found. Install Swift 6.3 for Debian 12
(https://www.swift.org/install/linux/debian/12/) and put its usr/bin folder into PATH."
  local version
  version=$(swift --version 2>/dev/null | sed -nE 's/.*Swift version ([0-9]+)\.([0-9]+).*/\1 \2/p' | head -n 1)
  local major=${version% *} minor=${version#* }
  if [ -z "$version" ] || [ "$major" -lt 6 ] || { [ "$major" -eq 6 ] && [ "$minor" -lt 2 ]; }; then
    fail "$(command -v swift) is Swift ${version/ /.}; 6.2 or newer is needed."
  fi
}

# build_release [PRODUCT]: makes a release build of pushfleet or another product; prints its folder.
build_release() {
  # Only for the build: the program would read it as a setting.
  local -x PUSHFLEET_COMMIT=${PUSHFLEET_COMMIT-$(git -C "$root" rev-parse --short=12 HEAD 2>/dev/null || true)}
  (cd "$root" && swift build -c release --static-swift-stdlib --product "${1:-pushfleet}" >&2) || fail "the build failed"
  (cd "$root" && swift build -c release --static-swift-stdlib --show-bin-path)
}

make_scratch() {
  scratch=$(mktemp -d "${TMPDIR:-/tmp}/pushfleet.XXXXXX")
  trap stop_everything EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
}

# start NAME COMMAND…: runs a command in a new process group, with a log in the scratch folder; sets `pid`.
start() {
  local name=$1
  shift
  setsid "$@" >"$scratch/$name.log" 2>&1 </dev/null &
  pid=$!
  started+=("$pid")
}

# stop PID [SECONDS]: sends SIGTERM to the group, and SIGKILL if it still runs after this time (default 10 s).
stop() {
  local group=$1 tries=$((${2:-10} * 20))
  kill -TERM -- "-$group" 2>/dev/null || true
  while kill -0 -- "-$group" 2>/dev/null && [ $((tries--)) -gt 0 ]; do sleep 0.05; done
  kill -KILL -- "-$group" 2>/dev/null || true
  wait "$group" 2>/dev/null || true
}

# Stops in reverse order, so that clients end before their servers.
stop_everything() {
  local status=$? index
  trap - EXIT
  trap '' INT TERM
  for ((index = ${#started[@]} - 1; index >= 0; index--)); do stop "${started[index]}"; done
  if [ -n "$scratch" ]; then rm -rf "$scratch"; fi
  exit "$status"
}

# began PID: start time in clock ticks since boot, which identifies the process together with its id.
began() { sed -E 's/.*\) //' "/proc/$1/stat" 2>/dev/null | cut -d ' ' -f 20; }

# Keeps everything running after the script; `resume_scratch` in a later run stops it.
keep_scratch() {
  local group
  for group in "${started[@]}"; do
    if kill -0 "$group" 2>/dev/null; then echo "$group $(began "$group")"; fi
  done >"$scratch/running"
  trap - EXIT INT TERM
}

# resume_scratch FOLDER: adopts the processes that `keep_scratch` left, so that they stop when this script ends.
resume_scratch() {
  local group birth
  [ -f "$1/running" ] || fail "$1 is not the folder of something left running"
  scratch=$1
  while read -r group birth; do
    if [ "$(began "$group")" = "$birth" ]; then started+=("$group"); fi
  done <"$1/running"
  trap stop_everything EXIT
}

free_port() {
  "$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# wait_for_port PORT PID NAME: waits until something listens; fails if the process ends or a minute has passed.
wait_for_port() {
  local tries=1200
  until (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; do
    kill -0 "$2" 2>/dev/null && [ $((tries--)) -gt 0 ] || {
      tail -n 20 "$scratch/$3.log" >&2
      fail "$3 did not start"
    }
    sleep 0.05
  done
}

# Starts a private RabbitMQ: node name, home, cookie, data, logs, ports and port mapper. Sets `broker_port`, `mapper_port`.
start_broker() {
  [ -x /usr/lib/rabbitmq/bin/rabbitmq-server ] || fail "RabbitMQ is missing: run deploy/install-dependencies"
  local home=$scratch/rabbitmq
  mkdir -p "$home"
  mapper_port=$(free_port)
  start epmd epmd -port "$mapper_port" -address 127.0.0.1
  broker_port=$(free_port)
  cat >"$home/rabbitmq.conf" <<CONF
listeners.tcp.default = 127.0.0.1:$broker_port
disk_free_limit.absolute = 50MB
log.console = true
log.file = false
CONF
  echo '[].' >"$home/enabled_plugins"
  start rabbitmq env -i PATH="$PATH" LANG=C.UTF-8 HOME="$home" ERL_EPMD_PORT="$mapper_port" ERL_EPMD_ADDRESS=127.0.0.1 \
    RABBITMQ_NODENAME="pushfleet-$$@localhost" RABBITMQ_DIST_PORT="$(free_port)" \
    RABBITMQ_CONFIG_FILE="$home/rabbitmq.conf" RABBITMQ_ENABLED_PLUGINS_FILE="$home/enabled_plugins" \
    RABBITMQ_MNESIA_BASE="$home/data" RABBITMQ_LOG_BASE="$home/log" RABBITMQ_PID_FILE="$home/pid" \
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS='-kernel inet_dist_use_interface {127,0,0,1}' \
    /usr/lib/rabbitmq/bin/rabbitmq-server
  wait_for_port "$broker_port" "$pid" rabbitmq
}

# Starts a private, durable PostgreSQL, reachable only by a socket in its folder. PostgreSQL refuses to run as root, so root runs
# it as the user postgres. Sets `postgres_location`.
start_postgres() {
  local home=$scratch/postgres binaries as=()
  binaries=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
  [ -x "$binaries/postgres" ] || fail "PostgreSQL is missing: run deploy/install-dependencies"
  mkdir -p "$home"
  if [ "$(id -u)" -eq 0 ]; then
    as=(setpriv --reuid=postgres --regid=postgres --clear-groups)
    chmod 711 "$scratch"
    chown postgres "$home"
  fi
  (cd / && "${as[@]}" "$binaries/initdb" -D "$home/data" -U postgres -A trust -E UTF8 --no-locale --no-sync >"$scratch/initdb.log") ||
    fail "PostgreSQL's cluster can't be made"
  start postgres "${as[@]}" "$binaries/postgres" -D "$home/data" -k "$home" -p 5432 -c listen_addresses=
  local tries=600
  until "$binaries/pg_isready" -q -h "$home"; do
    kill -0 "$pid" 2>/dev/null && [ $((tries--)) -gt 0 ] || {
      tail -n 20 "$scratch/postgres.log" >&2
      fail "postgres did not start"
    }
    sleep 0.05
  done
  # shellcheck disable=SC2034  # the sourcing scripts use it
  postgres_location="postgresql://postgres@/postgres?host=${home//\//%2F}"
}

# make_certificates FOLDER [NAME…]: makes a certificate authority (ca.pem) and a server's certificate (server.pem, server.key) for
# loopback and the host names.
make_certificates() (
  cd "$1" || exit 1
  shift
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj '/CN=pushfleet test CA' \
    -keyout ca.key -out ca.pem -addext 'keyUsage=critical,keyCertSign' 2>openssl.log
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj '/CN=localhost' \
    -keyout server.key -out server.csr 2>>openssl.log
  openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -out server.pem \
    -extfile <(printf 'subjectAltName=DNS:localhost,IP:127.0.0.1%s\nextendedKeyUsage=serverAuth\n' "$(printf ',DNS:%s' "${@:-localhost}")") 2>>openssl.log
  rm server.csr openssl.log
)

# make_apns_key FILE: makes a signing key in Apple's format, PKCS#8 PEM on P-256.
make_apns_key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1" 2>/dev/null; }
